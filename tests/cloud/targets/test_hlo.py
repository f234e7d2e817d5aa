"""Compiled programs: their kernels, and how often they run."""

from hackmatrix.cloud.targets.hlo import HloEvent, events, read

PROGRAM = """HloModule jit_f, is_scheduled=true

%fused (p: s32[8]) -> s32[8] {
  %p = s32[8]{0} parameter(0)
  ROOT %gather.1 = s32[8]{0} gather(%p), offset_dims={}
}

%body (b: (s32[], s32[8])) -> (s32[], s32[8]) {
  %b = (s32[], s32[8]{0}) parameter(0)
  %x = s32[8]{0} get-tuple-element(%b), index=1
  %one = s32[] constant(1)
  %f = s32[8]{0:T(128)} fusion(%x), calls=%fused, metadata={op_name="jit(f)/play/go"}
  ROOT %t = (s32[], s32[8]{0}) tuple(%one, %f)
}

%counts (c: (s32[], s32[8])) -> pred[] {
  %c = (s32[], s32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%c), index=0
  %n = s32[] constant(5)
  ROOT %lt = pred[] compare(%i, %n), direction=LT
}

%asks (a: (s32[], s32[8])) -> pred[] {
  %a = (s32[], s32[8]{0}) parameter(0)
  %y = s32[8]{0} get-tuple-element(%a), index=1
  ROOT %any = pred[] fusion(%y), calls=%fused, backend_config={"estimated_cycles":"70"}
}

%small (s: s32[8]) -> s32[8] {
  ROOT %s = s32[8]{0} parameter(0)
}

%large (l: s32[8]) -> s32[8] {
  %l = s32[8]{0} parameter(0)
  ROOT %copy = s32[8]{0} copy(%l), backend_config={"estimated_cycles":"600"}
}

ENTRY %main (m: s32[8]) -> s32[8] {
  %m = s32[8]{0} parameter(0)
  %zero = s32[] constant(0)
  %sum = f32[2,3]{1,0} all-reduce(%m), to_apply=%add
  %start = (s32[8]{0}, s32[8]{0}, u32[]) copy-start(%m)
  %number = s32[] add(%zero, %zero)
  %u = (s32[], s32[8]{0}) tuple(%zero, %m)
  %w = (s32[], s32[8]{0}) while(%u), condition=%counts, body=%body
  %v = (s32[]) while(%w), condition=%asks, body=%body, metadata={op_name="jit(f)/play/roam/while"}
  %k = (s32[]) while(%v), condition=%asks, body=%body, x={"known_trip_count":{"n":"2"}}
  %r = s32[8]{0} get-tuple-element(%k), index=1
  ROOT %d = s32[8]{0} conditional(%zero, %r, %r), branch_computations={%small, %large}
}
"""
TRIPS = {"jit(f)/play/roam/while": 10.0}


def found() -> list[HloEvent]:
    return events(read(PROGRAM), TRIPS.__getitem__)


def test_a_loop_runs_as_often_as_its_condition_or_the_compiler_or_the_caller_says() -> None:
    assert [each.times for each in found() if each.by_index and each.opcode == "fusion"] == [
        *(5, 10, 11, 2, 3)  # a condition is asked once more than the body runs
    ]


def test_kernels_are_what_the_device_starts_by_itself() -> None:
    kernels = [each for each in found() if each.category == "kernel"]
    assert [each.opcode for each in kernels] == ["fusion"] * 5 + ["copy"]  # a branch's longer side
    assert kernels[-1].cycles == 600  # the compiler's estimate
    # What the compiler made has the path of the loop around it.
    asked = [each.path for each in kernels if each.cycles == 70]
    assert asked == ["jit(f)/play/roam/while", ""]


def test_choices_are_branches_and_rounds_that_the_data_decides() -> None:
    choices = [(each.opcode, each.times) for each in found() if each.category == "choice"]
    assert choices == [("while", 11), ("conditional", 1)]


def test_bytes_of_an_all_reduce() -> None:
    (only,) = (each for each in found() if each.category == "all-reduce")
    assert (only.size, only.times) == (24, 1)


PRODUCT_AND_UPDATES = """HloModule jit_g, is_scheduled=true

%fused_row (table: f32[8,4], row: f32[4], at: s32[]) -> f32[8,4] {
  %table = f32[8,4]{1,0} parameter(0)
  %row = f32[4]{0} parameter(1)
  %at = s32[] parameter(2)
  %one_row = f32[1,4]{1,0} bitcast(%row)
  %zero = s32[] constant(0)
  ROOT %update = f32[8,4]{1,0} dynamic-update-slice(%table, %one_row, %at, %zero)
}

%fused_two (table: f32[8,4], row: f32[4], at: s32[]) -> (f32[4], f32[8,4]) {
  %table = f32[8,4]{1,0} parameter(0)
  %row = f32[4]{0} parameter(1)
  %at = s32[] parameter(2)
  %twice = f32[4]{0} add(%row, %row)
  %one_row = f32[1,4]{1,0} bitcast(%twice)
  %zero = s32[] constant(0)
  %update = f32[8,4]{1,0} dynamic-update-slice(%table, %one_row, %at, %zero)
  ROOT %both = (f32[4]{0}, f32[8,4]{1,0}) tuple(%twice, %update)
}

ENTRY %main (a: f32[8,4], b: f32[4,2], r: f32[4], i: s32[]) -> f32[8,2] {
  %a = f32[8,4]{1,0} parameter(0)
  %b = f32[4,2]{1,0} parameter(1)
  %r = f32[4]{0} parameter(2)
  %i = s32[] parameter(3)
  %in_place = f32[8,4]{1,0} fusion(%a, %r, %i), kind=kLoop, calls=%fused_row
  %both = (f32[4]{0}, f32[8,4]{1,0}) fusion(%in_place, %r, %i), kind=kLoop, calls=%fused_two
  %whole = f32[8,4]{1,0} get-tuple-element(%both), index=1
  %alone = f32[8,4]{1,0} dynamic-update-slice(%whole, %b, %i, %i)
  %g = (f32[8,2], s8[33554432]) custom-call(%a, %b), custom_call_target="__cublas$gemm"
  %lt = (f32[8,2], s8[33554432]) custom-call(%a, %b), custom_call_target="__cublas$lt$matmul"
  ROOT %product = f32[8,2]{1,0} get-tuple-element(%lt), index=0
}
"""


def test_bytes_that_kernels_write() -> None:
    sizes = [each.size for each in events(read(PRODUCT_AND_UPDATES), TRIPS.__getitem__)]
    # Of an update in place the part that it replaces; of a product not its workspace.
    assert sizes == [4 * 4, 4 * 4 + 4 * 4, 4 * 8, 4 * 16, 4 * 16]
