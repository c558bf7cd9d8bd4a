// What people are told of a route, and how many bytes operators say that they move.
#include <gtest/gtest.h>

#include "ops/add_norm/add_norm.h"
#include "ops/argmax/argmax.h"
#include "ops/attention/attention.h"
#include "ops/embedding/embedding.h"
#include "ops/linear/linear.h"
#include "ops/qkv_rope/qkv_rope.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/slice/slice.h"

namespace tandem::ops {
namespace {

constexpr gpu::View bound{1, 0, 256};

Route linear(spec::WeightType type, uint32_t rows, uint32_t columns, Epilogue epilogue,
             RowRoute route, RowFormat x_format = RowFormat::columns) {
  const Linear op{.weights = {type, rows, columns, {{0, rows, {}, {}}}},
                  .epilogue = epilogue,
                  .rows = route,
                  .softcap = 30,
                  .x_format = x_format,
                  .max_rows = 1};
  return linear_route(op, op.weights.parts[0], {});
}

Attention attention(AttentionRoute route, uint32_t window) {
  return {.heads = 8,
          .kv_heads = 1,
          .head_dim = 256,
          .window = window,
          .positions = 1024,
          .route = route,
          .kv = {.type = KvType::f16, .slots = 600},
          .max_rows = 1};
}

TEST(Label, TellsTheShape) {
  using spec::WeightType;
  const Matrix table{WeightType::q4_0, 8192, 320, {}};
  const std::pair<Route, const char*> cases[] = {
      {linear(WeightType::q4_0, 6144, 1536, Epilogue::gelu_pair, RowRoute::one),
       "linear_row q4_0 6144x1536 gelu_pair m=1 lanes=128"},
      {linear(WeightType::q8_0, 256, 768, Epilogue::none, RowRoute::few),
       "linear_row q8_0 256x768 m=4 lanes=64"},
      {linear(WeightType::f16, 8192, 256, Epilogue::softcap, RowRoute::many),
       "linear_tiled f16 8192x256 softcap"},
      {linear(WeightType::f32, 32, 256, Epilogue::gelu_times, RowRoute::many),
       "linear_tiled f32 32x256 gelu_times"},
      {linear(WeightType::q8_0, 64, 96, Epilogue::none, RowRoute::many, RowFormat::int8),
       "linear_tiled_int8 q8_0 64x96"},
      {attention_routes(attention(AttentionRoute::split, 1024), {})[0],
       "attention_split 8/1x256 f16 window=1024"},
      {attention_routes(attention(AttentionRoute::split, 1024), {})[1],
       "attention_combine 8x256 window=1024"},
      {attention_routes(attention(AttentionRoute::whole, 0), {})[0],
       "attention 8/1x256 f16 full whole"},
      {embedding_route({.table = table, .columns = 192}, {0, 4096, {}, {}}),
       "embedding q4_0 4096x192"},
      {qkv_rope_route({.heads = 8, .kv_heads = 1, .head_dim = 256, .kv = {.type = KvType::f32}}),
       "qkv_rope 8/1x256 f32"},
      {qkv_rope_route({.heads = 8, .kv_heads = 1, .head_dim = 256, .owns_kv = false}),
       "q_rope 8x256"},
      {rms_norm_route({.columns = 1536}), "rms_norm 1536"},
      {add_norm_route({.columns = 1536}), "add_norm 1536"},
      {add_norm_route({.columns = 1536, .scalar = bound, .next_weight = bound}),
       "add_norm 1536 scaled next"},
      {argmax_routes({.columns = 262144})[0], "argmax 262144"},
      {argmax_routes({.columns = 262144})[1], "argmax_combine 128"},
      {slice_route({.x_stride = 256, .columns = 128, .rows = SliceRows::last}),
       "slice 128 one_row"},
      {{"accept", {{"CONTEXT", 9}, {"DRAFTS", 2}}, {}}, "accept 2 drafts"},
      {{"newcomer", {{"ROWS", 3}, {"EPSILON", 1e-6f}}, {}}, "newcomer ROWS=3 EPSILON=1e-06"},
  };
  for (const auto& [route, expected] : cases) EXPECT_EQ(label(route), expected);
}

TEST(Label, BytesOfAProductAreItsPlanesInputsAndOutputs) {
  using spec::WeightType;
  struct Case {
    Route route;
    uint64_t bytes;  // with 3 rows
  };
  for (const Case& c :
       std::vector<Case>{{linear(WeightType::q4_0, 64, 96, Epilogue::none, RowRoute::many),
                          64 * 96 / 32 * 18 + 3 * (96 + 64) * 4},
                         {linear(WeightType::q8_0, 64, 96, Epilogue::gelu_pair, RowRoute::few),
                          64 * 96 / 32 * 34 + 3 * (96 + 32) * 4},
                         {linear(WeightType::f16, 64, 96, Epilogue::gelu_times, RowRoute::many),
                          64 * 96 * 2 + 3 * (96 + 2 * 64) * 4}}) {
    EXPECT_EQ(gpu::bytes(c.route.traffic.value(), {.rows = 3, .positions = 7}), c.bytes)
        << label(c.route);
  }
}

TEST(Label, BytesOfAttentionGrowWithThePositionsInReach) {
  constexpr uint64_t kv = 2 * 256 * 2, row = 8 * 256 * 4, partials = 8 * 260 * 4 / 32;
  const auto bytes = [](AttentionRoute route, uint32_t window, gpu::Extent extent) {
    return gpu::bytes(attention_routes(attention(route, window), {})[0].traffic.value(), extent);
  };
  EXPECT_EQ(bytes(AttentionRoute::whole, 0, {1, 1000}), 2 * row + 1000 * kv);
  EXPECT_EQ(bytes(AttentionRoute::whole, 512, {1, 100}), 2 * row + 100 * kv);
  EXPECT_EQ(bytes(AttentionRoute::whole, 512, {1, 1000}), 2 * row + 512 * kv);
  EXPECT_EQ(bytes(AttentionRoute::whole, 512, {3, 1000}), 6 * row + 514 * kv);
  EXPECT_EQ(bytes(AttentionRoute::split, 1024, {1, 2000}), row + 1024 * (kv + partials));
}

}  // namespace
}  // namespace tandem::ops
