// Chooses how attention is cut into workgroups, and records it.
#include "ops/attention/attention.h"

#include <algorithm>

#include "base/error.h"

namespace tandem::ops {
namespace {

// The most tiles of keys that one row sees.
uint32_t max_splits(const Attention& op) {
  const uint32_t context = (op.positions + split_keys - 1) / split_keys;
  if (op.window == 0) return context;
  // A window of more than one key that starts at the last key of a tile touches the most.
  return std::min(context, (op.window + split_keys - 2) / split_keys + 1);
}

// Heads of one KV head that a workgroup computes together, so that they read each key once: many
// rows keep the GPU busy all the same, few do not.
uint32_t queries_together(const Attention& op) {
  if (op.route == AttentionRoute::split) return 1;
  const uint32_t group = op.heads / op.kv_heads;
  uint32_t queries = 4;
  while (group % queries != 0) --queries;
  return queries;
}

// Each invocation owns a pair of a head's elements.
uint32_t invocations(const Attention& op) {
  return std::max(64u, (op.head_dim / 2 + 63) / 64 * 64);
}

// Partial sums for each head and `split_keys` positions in reach, of one row.
uint64_t partials_bytes_per_position(const Attention& op) {
  return op.heads * (op.head_dim + 2) * sizeof(float) / split_keys;
}

// q, y or the partial sums, and each key and value in reach once.
gpu::Traffic traffic(const Attention& op) {
  const uint64_t row = uint64_t{op.heads} * op.head_dim * sizeof(float);
  const bool split = op.route == AttentionRoute::split;
  return {.per_row = split ? row : 2 * row,
          .per_position = 2 * kv_row_bytes(op.kv.type, op.kv_heads, op.head_dim) +
                          (split ? partials_bytes_per_position(op) : 0),
          .window = op.window};
}

gpu::Traffic combine_traffic(const Attention& op) {
  return {.per_row = uint64_t{op.heads} * op.head_dim * sizeof(float),
          .per_position = partials_bytes_per_position(op),
          .window = op.window};
}

Result<void> check(const Attention& op) {
  if (op.head_dim == 0 || op.head_dim % 8 != 0 || op.head_dim > 512) {
    return fail(ErrorCode::unsupported,
                "attention: head_dim must be a multiple of 8 up to 512, not {}", op.head_dim);
  }
  if (op.kv_heads == 0 || op.heads == 0 || op.heads % op.kv_heads != 0) {
    return fail(ErrorCode::unsupported, "attention: {} heads cannot share {} KV heads evenly",
                op.heads, op.kv_heads);
  }
  const uint64_t elements = uint64_t{op.max_rows} * op.heads * op.head_dim;
  TRY(gpu::check_indexable(elements));
  TRY(check_size("attention", "q", op.q, elements * sizeof(float)));
  TRY(check_size("attention", "y", op.y, elements * sizeof(float)));
  TRY(check_cache("attention", op.kv, op.kv_heads, op.head_dim));
  if (op.route == AttentionRoute::whole) return {};
  TRY(gpu::check_indexable(attention_partials_bytes(op) / sizeof(float)));
  return check_size("attention", "partials", op.partials, attention_partials_bytes(op));
}

}  // namespace

uint64_t attention_partials_bytes(const Attention& op) {
  const uint64_t split_bytes = (uint64_t{op.head_dim} + 2) * sizeof(float);
  return uint64_t{op.max_rows} * op.heads * max_splits(op) * split_bytes;
}

std::vector<Route> attention_routes(const Attention& op) {
  const bool split = op.route == AttentionRoute::split;
  const uint32_t queries = queries_together(op);
  const uint32_t lanes = std::max(1u, invocations(op) / (queries * split_keys));
  gpu::Grid grid = {.groups = op.heads / queries, .rows_per_group = 1};
  if (split && op.window == 0) grid.positions_per_group = split_keys;
  if (split && op.window != 0) grid.groups *= max_splits(op);
  std::vector<Route> routes = {{"attention",
                                {{"HEADS", double(op.heads)},
                                 {"KV_HEADS", double(op.kv_heads)},
                                 {"HEAD_DIM", double(op.head_dim)},
                                 {"WINDOW", double(op.window)},
                                 {"LAG", double(op.lag)},
                                 {"SLOTS", double(op.kv.slots)},
                                 {"KV_F16", op.kv.type == KvType::f16 ? 1.0 : 0.0},
                                 {"TILE", double(split_keys)},
                                 {"QUERIES", double(queries)},
                                 {"SPLIT", split ? 1.0 : 0.0},
                                 {"SPLITS", double(max_splits(op))},
                                 {"INVOCATIONS", double(invocations(op))},
                                 {"LANES", double(lanes)}},
                                grid,
                                traffic(op)}};
  if (split) {
    routes.push_back({"attention_combine",
                      {{"HEADS", double(op.heads)},
                       {"HEAD_DIM", double(op.head_dim)},
                       {"WINDOW", double(op.window)},
                       {"LAG", double(op.lag)},
                       {"TILE", double(split_keys)},
                       {"SPLITS", double(max_splits(op))},
                       {"INVOCATIONS", double(invocations(op))}},
                      {.groups = op.heads, .rows_per_group = 1},
                      combine_traffic(op)});
  }
  return routes;
}

Result<void> record(gpu::CommandList& commands, const Attention& op) {
  TRY(check(op));
  const bool split = op.route == AttentionRoute::split;
  const std::vector<Route> routes = attention_routes(op);
  TRY(dispatch(commands, routes[0],
               {gpu::uniform(op.step), gpu::read(op.q), gpu::read(op.kv.keys),
                gpu::read(op.kv.values), gpu::read_write(split ? op.partials : op.y)}));
  if (!split) return {};
  return dispatch(commands, routes[1],
                  {gpu::uniform(op.step), gpu::read(op.partials), gpu::read_write(op.y)});
}

}  // namespace tandem::ops
