// The pair of a target and its assistant: what must agree before one may draft for the other.
#pragma once

#include "spec/config.h"

namespace tandem::spec {

// Refuses, with both values: another hidden size or vocabulary than the target's; for each kind of
// the assistant's layers, no donor, or one of other KV heads, head_dim or RoPE (the donor's keys
// are turned already); a window wider than the target's, whose ring keeps no more; fewer positions.
// `where` names the assistant in messages.
Result<void> check_pair(const Config& target, const AssistantConfig& assistant,
                        std::string_view where);

}  // namespace tandem::spec
