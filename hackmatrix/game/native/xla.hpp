// What `xla.cpp` gives to the module: handlers of custom calls by name.
#pragma once
#include <utility>
#include <vector>

std::vector<std::pair<const char*, void*>> xla_handlers();
