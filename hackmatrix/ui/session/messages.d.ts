// Made from messages.json by scripts/message_types.py.

/** number, parent, action, by, step, sum of rewards, stage, ending */
export type Node = [number, number, number, string, number, number, number, "won" | "died" | null];
/** an opinion: node, value, probability of the best action */
export type Brief = [number, number | null, number | null];
/** node, share of wins, stages cleared */
export type NodeOdds = [number, number, number];
/** what a search tried: action, visits, chance of winning, sequel */
export type Branch = [number, number, number | null, number[]];
/** shape, x, y, size, colour */
export type Mark = [string, number, number, number, string];
/** A line of text on the board. */
export type Text = { text: string; x: number; y: number; height: number; colour: string };
/** The marks of a cell. */
export type Group = { title: string; x: number; y: number; scale: number; marks: (Mark | Text | Group)[] };
/** The player's piece. */
export type Player = { row: number; col: number; hp: number; credits: number; energy: number; siphons: number; attack: number; score: number };
/** The numbers of the game that the player sees. */
export type Seen = { stage: number; interval: number; next_task: number; pending: number; step: boolean; over: "won" | "died" | null; turn: number; show: boolean; calm: boolean; atk_uses: number; player: Player; owned: string[]; saved: number };
/** The effect of an action, or `why` it is not possible. */
export type Preview = { why?: string; text?: string; cells?: number[]; moves?: [number, number][]; hits?: number };
/** A thing that happened, as far as the player sees it. */
export type Event = { kind: string; cell?: number; to?: number; piece?: string; amount?: number };
/** The action that led to a position. */
export type LastAction = { action: number; by: string; events: Event[]; told: string[]; reward: number; parts: Record<string, number> };
/** The opinion of the agent at the controls. */
export type View = { name: string; probabilities: number[]; value: number | null; entropy: number; suggests: number; branches: Branch[] };
/** A room of the tutorial, or a puzzle. */
export type Task = { kind: "room" | "puzzle"; number: number; of: number; title: string; text: string; outcome: "done" | "lost" | null; rating?: number };
/** Facts of a session; `shared`: its game is a process's; `isExample`: it is an export's. */
export type About = { environment: string; agents: string[]; episodes: number; given: boolean; playing: boolean; reviews: boolean; shared?: boolean; isExample?: boolean };
/** A position; with `nodes` and `game` all of a tree, with `added` what is new in it. */
export type Position = { at: number; seen: Seen; board: Group[]; labels: string[]; actions: Preview[]; threat: number[]; last: LastAction | null; controls: string | null; ending: string; odds: NodeOdds[]; hits?: number; task?: Task; agent?: View; opinions?: Brief[]; game?: string; nodes?: Node[]; added?: Node[]; line?: number[]; about?: About; behind?: number };
/** Nothing new in a game that others play. */
export type UpToDate = { behind: number };
/** Moves that were made: node, the agent's action, what the move costs of winning. */
export type Reviewed = { moves: [number, number, number][] };
/** Trails of the player, from the cell of now, and how they end. */
export type Futures = { futures: [number[], "won" | "died" | "stage" | null][] };
/** Whether games were won, and the stages cleared. */
export type Finished = { finished: [boolean, number][] };
/** Choices of agents: name, action, its probability, value; and what a search tried. */
export type Others = { others: [string, number, number, number | null][]; branches: Branch[] };
/** The packaged agent's game: stage and cell at its start and after each action. */
export type GhostGame = { places: [number, number][]; won: boolean; score: number; hits: number };
/** A replay; other fields of a file that is opened are not read. */
export type ReplayFile = { format: string; version: number; seed: string; actions: number[] };
/** A game to keep. */
export type Saved = { replay: ReplayFile };
/** The answer to what cannot be done. */
export type Failure = { error: string };

export type Request =
  | { do: "hello" }
  | { do: "new"; seed?: string }
  | { do: "act"; action: number }
  | { do: "agent"; steps?: number }
  | { do: "go"; node: number }
  | { do: "control"; agent: string | null }
  | { do: "others"; agent?: string }
  | { do: "review"; nodes: number[] }
  | { do: "futures"; action: number }
  | { do: "finish"; games: number; first?: number }
  | { do: "hidden"; show: boolean }
  | { do: "lesson"; number: number }
  | { do: "puzzle"; number?: number; rating?: number; done?: number[] }
  | { do: "ghost" }
  | { do: "compare" }
  | { do: "save" }
  | { do: "load"; replay: any; step?: number }
  | { do: "resume"; seed: string; nodes: [number, number, string][]; at: number }
  | { do: "follow" };
export type Answer = Partial<Position> & Partial<Others> & Partial<Reviewed> & Partial<Futures> & Partial<Finished> & Partial<GhostGame> & Partial<Saved> & Partial<Position | UpToDate> & Partial<Failure> & { id?: number };
