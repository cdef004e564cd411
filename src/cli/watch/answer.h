// The answer of `pawl doctor -- COMMAND`, for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/text.h"
#include "cli/watch/facts.h"
#include "cli/watch/judgement.h"

namespace pawl::cli::watch {

Json answer_json(const ProgramFacts& facts, const Judgement& judgement,
                 const std::vector<std::string>& command);
void print_answer(const ProgramFacts& facts, const Judgement& judgement,
                  const std::vector<std::string>& command);

}  // namespace pawl::cli::watch
