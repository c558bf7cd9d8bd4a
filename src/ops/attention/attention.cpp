// Chooses how attention is cut into workgroups, and records it.
#include "ops/attention/attention.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace tandem::ops {
namespace {

constexpr uint32_t invocations = 256;   // of a workgroup
constexpr uint32_t whole_queries = 32;  // of one of the route `whole`
constexpr uint32_t most_queries = 4;    // of a split

// Of the route `whole`: the most heads that share a KV head evenly.
uint32_t heads_together(const Attention& op) {
  const uint32_t group = op.heads / op.kv_heads;
  uint32_t heads = std::min(group, whole_queries);
  while (group % heads != 0) --heads;
  return heads;
}

// Of a split: measured on an H200 (docs/operators.md).
uint32_t tile(const Attention& op) {
  if (op.tile != 0) return op.tile;
  return op.window == 0 ? 64 : 32;
}

// Of a split. A software adapter runs one invocation after another, and what they cost it is mostly
// their waiting for each other: the fewer the better.
uint32_t queries(const Attention& op, const gpu::AdapterInfo& adapter) {
  if (op.queries != 0) return op.queries;
  uint32_t queries = adapter.software ? most_queries : 1;
  while (op.heads / op.kv_heads % queries != 0) --queries;
  return queries;
}

// The most tiles of keys that one row sees.
uint32_t max_splits(const Attention& op) {
  const uint32_t context = (op.positions + tile(op) - 1) / tile(op);
  if (op.window == 0) return context;
  // A window of more than one key that starts at the last key of a tile touches the most.
  return std::min(context, (op.window + tile(op) - 2) / tile(op) + 1);
}

// Workgroups that combine a head: some of 16 quads.
uint32_t combine_parts(const Attention& op) {
  uint32_t parts = std::max(1u, op.head_dim / 64);
  while (op.head_dim % (4 * parts) != 0) --parts;
  return parts;
}

// Partial sums for each head and position in reach, of one row.
uint64_t partials_bytes_per_position(const Attention& op) {
  return op.heads * (op.head_dim + 4) * sizeof(float) / tile(op);
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
  return {.per_row = row_bytes(op.y_format, op.heads * op.head_dim),
          .per_position = partials_bytes_per_position(op),
          .window = op.window};
}

Result<void> check_rope(const Attention& op) {
  const auto& [pairs, epsilon, q_norm, angles] = *op.rope;
  if (op.route != AttentionRoute::split) {
    return fail(ErrorCode::internal, "attention: only the route split turns queries");
  }
  if (pairs == 0 || pairs > op.head_dim / 2) {
    return fail(ErrorCode::unsupported, "attention: 1 to {} pairs can be rotated, not {}",
                op.head_dim / 2, pairs);
  }
  TRY(check_size("attention", "q_norm", q_norm, op.head_dim * sizeof(float)));
  return check_size("attention", "angles", angles, uint64_t{pairs} * 2 * sizeof(float));
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
  if (op.rope) TRY(check_rope(op));
  if (op.y_format != RowFormat::columns && (op.y_format != RowFormat::int8 || !writes_int8(op))) {
    return fail(ErrorCode::internal, "attention: heads of {} cannot be written in this format",
                op.head_dim);
  }
  if ((tile(op) != 32 && tile(op) != 64) || op.queries > most_queries ||
      (op.queries != 0 && op.heads / op.kv_heads % op.queries != 0)) {
    return fail(
        ErrorCode::internal,
        "attention: a split has 32 or 64 keys and up to 4 heads of a KV head, not {} and {}",
        tile(op), op.queries);
  }
  if (op.route == AttentionRoute::whole) return {};
  TRY(gpu::check_indexable(attention_partials_bytes(op) / sizeof(float)));
  return check_size("attention", "partials", op.partials, attention_partials_bytes(op));
}

}  // namespace

bool writes_int8(const Attention& op) {
  return op.route == AttentionRoute::split &&
         op.head_dim % (spec::block_columns * combine_parts(op)) == 0;
}

uint64_t attention_partials_bytes(const Attention& op) {
  const uint64_t split_bytes = (uint64_t{op.head_dim} + 4) * sizeof(float);
  return uint64_t{op.max_rows} * op.heads * max_splits(op) * split_bytes;
}

std::vector<Route> attention_routes(const Attention& op, const gpu::AdapterInfo& adapter) {
  std::vector<gpu::Constant> constants = {{"HEADS", double(op.heads)},
                                          {"HEAD_DIM", double(op.head_dim)},
                                          {"WINDOW", double(op.window)},
                                          {"LAG", double(op.lag)}};
  const auto with = [&](std::initializer_list<gpu::Constant> more) {
    std::vector<gpu::Constant> all = constants;
    all.insert(all.end(), more);
    return all;
  };
  const gpu::Constant kv_heads{"KV_HEADS", double(op.kv_heads)};
  const gpu::Constant slots{"SLOTS", double(op.kv.slots)};
  const gpu::Constant kv_f16{"KV_F16", op.kv.type == KvType::f16 ? 1.0 : 0.0};
  if (op.route == AttentionRoute::whole) {
    const uint32_t heads = heads_together(op);
    const uint32_t groups = std::bit_floor(std::min(8u, 2 * invocations / op.head_dim));
    return {{"attention",
             with({kv_heads,
                   slots,
                   kv_f16,
                   {"HEADS_TOGETHER", double(heads)},
                   {"VALUE_GROUPS", double(groups)}}),
             {.groups = op.heads / heads, .rows_per_group = whole_queries / heads},
             traffic(op)}};
  }
  const gpu::Constant rope{"ROPE", op.rope ? 1.0 : 0.0};
  const gpu::Constant rotated{"ROTATED", op.rope ? op.rope->rotated_pairs : 1.0};
  const gpu::Constant epsilon{"EPSILON", op.rope ? op.rope->epsilon : 0.0};
  const gpu::Constant splits{"SPLITS", double(max_splits(op))}, keys{"TILE", double(tile(op))};
  const uint32_t parts = combine_parts(op);
  const uint32_t together = queries(op, adapter);
  gpu::Grid grid = {.groups = op.heads / together, .rows_per_group = 1};
  if (op.window == 0) grid.positions_per_group = tile(op);
  if (op.window != 0) grid.groups *= max_splits(op);
  return {{"attention_split",
           with({kv_heads,
                 slots,
                 kv_f16,
                 splits,
                 keys,
                 {"QUERIES", double(together)},
                 rope,
                 rotated,
                 epsilon}),
           grid, traffic(op)},
          {"attention_combine",
           with({splits,
                 keys,
                 {"PARTS", double(parts)},
                 {"Y_INT8", op.y_format == RowFormat::int8 ? 1.0 : 0.0}}),
           {.groups = uint64_t{op.heads} * parts, .rows_per_group = 1},
           combine_traffic(op)}};
}

Result<void> record(gpu::CommandList& commands, const Attention& op) {
  TRY(check(op));
  const std::vector<Route> routes = attention_routes(op, commands.device().info());
  const gpu::Binding step = gpu::uniform(op.step), q = gpu::read(op.q);
  const gpu::Binding keys = gpu::read(op.kv.keys), values = gpu::read(op.kv.values);
  if (op.route == AttentionRoute::whole) {
    return dispatch(commands, routes[0], {step, q, keys, values, gpu::read_write(op.y)});
  }
  const gpu::Binding q_norm = gpu::read(op.rope ? op.rope->q_norm : op.q);
  const gpu::Binding angles = gpu::read(op.rope ? op.rope->angles : op.q);
  TRY(dispatch(commands, routes[0],
               {step, q, keys, values, q_norm, angles, gpu::read_write(op.partials)}));
  return dispatch(commands, routes[1], {step, gpu::read(op.partials), gpu::read_write(op.y)});
}

}  // namespace tandem::ops
