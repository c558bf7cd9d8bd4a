// Records q/k norm, RoPE and the KV write: one kernel for layers that own KV, one for those that
// share it.
#include "ops/qkv_rope/qkv_rope.h"

#include "base/error.h"

namespace tandem::ops {
namespace {

Result<void> check(const QkvRope& op) {
  if (op.head_dim == 0 || op.head_dim % 4 != 0) {
    return fail(ErrorCode::unsupported, "qkv_rope: head_dim must be a multiple of 4, not {}",
                op.head_dim);
  }
  if (op.rotated_pairs == 0 || op.rotated_pairs > op.head_dim / 2) {
    return fail(ErrorCode::unsupported, "qkv_rope: 1 to {} pairs can be rotated, not {}",
                op.head_dim / 2, op.rotated_pairs);
  }
  const uint64_t head = uint64_t{op.head_dim} * sizeof(float);
  const uint64_t kv_heads = op.owns_kv ? uint64_t{op.kv_heads} * (op.key_is_value ? 1 : 2) : 0;
  TRY(gpu::check_indexable(op.max_rows * (op.heads + kv_heads) * op.head_dim));
  TRY(check_size("qkv_rope", "qkv", op.qkv, op.max_rows * (op.heads + kv_heads) * head));
  TRY(check_size("qkv_rope", "q", op.q, uint64_t{op.max_rows} * op.heads * head));
  TRY(check_size("qkv_rope", "q_norm", op.q_norm, head));
  TRY(check_size("qkv_rope", "angles", op.angles, uint64_t{op.rotated_pairs} * 2 * sizeof(float)));
  if (!op.owns_kv) return {};
  TRY(check_size("qkv_rope", "k_norm", op.k_norm, head));
  return check_cache("qkv_rope", op.kv, op.kv_heads, op.head_dim);
}

// The norms; for each row its angles, q in and out, k (and v) in and the two rows of the KV cache.
gpu::Traffic traffic(const QkvRope& op) {
  const uint64_t head = op.head_dim * sizeof(float);
  gpu::Traffic traffic{.fixed = head,
                       .per_row = 2 * op.heads * head + 2 * op.rotated_pairs * sizeof(float)};
  if (op.owns_kv) {
    traffic.fixed += head;
    traffic.per_row += op.kv_heads * head * (op.key_is_value ? 1 : 2) +
                       2 * kv_row_bytes(op.kv.type, op.kv_heads, op.head_dim);
  }
  return traffic;
}

}  // namespace

Route qkv_rope_route(const QkvRope& op) {
  Route route = {"q_rope",
                 {{"HEADS", double(op.heads)},
                  {"HEAD_DIM", double(op.head_dim)},
                  {"ROTATED", double(op.rotated_pairs)},
                  {"EPSILON", op.epsilon},
                  {"QUERY_SCALE", op.query_scale}},
                 {.groups = op.heads, .rows_per_group = 1},
                 traffic(op)};
  if (op.owns_kv) {
    route.kernel = "qkv_rope";
    route.constants.insert(route.constants.end(),
                           {{"KV_HEADS", double(op.kv_heads)},
                            {"KEY_IS_VALUE", op.key_is_value ? 1.0 : 0.0},
                            {"NORMS_VALUES", op.norms_values ? 1.0 : 0.0},
                            {"KV_F16", op.kv.type == KvType::f16 ? 1.0 : 0.0},
                            {"SLOTS", double(op.kv.slots)}});
    route.grid.groups += 2 * op.kv_heads;
  }
  return route;
}

Result<void> record(gpu::CommandList& commands, const QkvRope& op) {
  TRY(check(op));
  const Route route = qkv_rope_route(op);
  if (!op.owns_kv) {
    return dispatch(commands, route,
                    {gpu::uniform(op.step), gpu::read(op.qkv), gpu::read(op.q_norm),
                     gpu::read(op.angles), gpu::read_write(op.q)});
  }
  return dispatch(commands, route,
                  {gpu::uniform(op.step), gpu::read(op.qkv), gpu::read(op.q_norm),
                   gpu::read(op.k_norm), gpu::read(op.angles), gpu::read_write(op.q),
                   gpu::read_write(op.kv.keys), gpu::read_write(op.kv.values)});
}

}  // namespace tandem::ops
