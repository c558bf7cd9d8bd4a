// q/k/v norm, RoPE and KV write on the GPU against their reference in double.
#include "ops/qkv_rope/qkv_rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/half.h"
#include "ops/harness.h"
#include "ops/untouched.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

constexpr uint32_t max_rows = 8;
constexpr float epsilon = 1e-6f;

struct Case {
  QkvRopeShape shape;
  KvType type;
  uint32_t slots;
  uint32_t position;
  uint32_t rows;
  const char* why;

  uint32_t sources() const {
    const uint32_t values = shape.key_is_value ? 0 : shape.kv_heads;
    return shape.heads + (shape.owns_kv ? shape.kv_heads + values : 0);
  }
  size_t cache_size() const { return size_t{slots} * shape.kv_heads * shape.head_dim; }
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.why; }

struct Inputs {
  std::vector<float> qkv;  // [max_rows][sources][head_dim]
  std::vector<float> q_norm, k_norm;
};

Inputs make_inputs(const Case& c) {
  return {test::random_floats(size_t{max_rows} * c.sources() * c.shape.head_dim, 1, 4),
          test::random_floats(c.shape.head_dim, 2), test::random_floats(c.shape.head_dim, 3)};
}

struct Outputs {
  std::vector<float> q;
  std::vector<float> keys, values;  // decoded; what was not written is poison
};

// The floats of a cache's plane.
std::vector<float> decode(KvType type, std::vector<float> plane) {
  if (type == KvType::f32) return plane;
  std::vector<float> result;
  for (float packed : plane) {
    const uint32_t bits = std::bit_cast<uint32_t>(packed);
    const bool poison = test::is_poison(packed);
    result.push_back(poison ? packed : from_half(uint16_t(bits & 0xffff)));
    result.push_back(poison ? packed : from_half(uint16_t(bits >> 16)));
  }
  return result;
}

Outputs on_gpu(const Case& c, const Inputs& in) {
  gpu::Device& device = test::test_device();
  const QkvRopeShape& shape = c.shape;
  const size_t plane_bytes = c.cache_size() * (c.type == KvType::f16 ? 2 : 4);
  const gpu::Buffer step = test::upload(Step{.position = c.position, .rows = c.rows});
  const gpu::Buffer qkv = test::upload(in.qkv);
  const gpu::Buffer q_norm = test::upload(in.q_norm), k_norm = test::upload(in.k_norm);
  const gpu::Buffer angles =
      test::upload(rope_angles(shape.rope, shape.head_dim, c.position + max_rows));
  const gpu::Buffer q =
      test::poisoned(uint64_t{max_rows} * shape.heads * shape.head_dim * sizeof(float));
  const gpu::Buffer keys = test::poisoned(plane_bytes), values = test::poisoned(plane_bytes);
  QkvRope op = {.heads = shape.heads,
                .kv_heads = shape.kv_heads,
                .head_dim = shape.head_dim,
                .rotated_pairs = shape.rope.rotated_pairs,
                .owns_kv = shape.owns_kv,
                .key_is_value = shape.key_is_value,
                .norms_values = shape.norms_values,
                .query_scale = float(shape.query_scale),
                .epsilon = epsilon,
                .step = step.view(),
                .qkv = qkv.view(),
                .q_norm = q_norm.view(),
                .angles = angles.view(),
                .q = q.view(),
                .max_rows = max_rows};
  if (shape.owns_kv) {
    op.k_norm = k_norm.view();
    op.kv = {c.type, c.slots, keys.view(), values.view()};
  }
  gpu::CommandList commands(device);
  test::expect_success(record(commands, op));
  EXPECT_EQ(commands.dispatch_count(), 1u);
  test::run(commands, {.rows = max_rows});
  return {test::download(q.view()), decode(c.type, test::download(keys.view())),
          decode(c.type, test::download(values.view()))};
}

Outputs expected(const Case& c, const Inputs& in) {
  const std::vector<float> poison(c.cache_size(), std::bit_cast<float>(test::poison_bits));
  Outputs out{std::vector<float>(size_t{c.rows} * c.shape.heads * c.shape.head_dim), poison,
              poison};
  qkv_rope_reference(c.shape, c.position, c.rows, in.qkv, in.q_norm, in.k_norm, out.q,
                     {c.type, c.slots, out.keys, out.values});
  return out;
}

// Slots that the reference left poisoned are poisoned, and the others are close.
void expect_cache(std::span<const float> actual, std::span<const float> wanted, double tolerance) {
  std::vector<float> written, written_wanted, rest;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (test::is_poison(wanted[i])) {
      rest.push_back(actual[i]);
    } else {
      written.push_back(actual[i]);
      written_wanted.push_back(wanted[i]);
    }
  }
  EXPECT_TRUE(test::untouched(std::span<const float>(rest)));
  EXPECT_TRUE(test::close(written, written_wanted, tolerance));
}

class QkvRopeCases : public ::testing::TestWithParam<Case> {};

TEST_P(QkvRopeCases, AgreesWithTheReferenceAndWritesOnlyItsSlots) {
  const Case& c = GetParam();
  const Inputs in = make_inputs(c);
  const Outputs actual = on_gpu(c, in);
  const Outputs wanted = expected(c, in);
  // f32: a norm (1e-6), two products and a sum. f16: one place of its 11 bits, since WGSL leaves
  // the direction of rounding open.
  const double cache_tolerance = c.type == KvType::f32 ? 2e-6 : 0x1p-10;
  EXPECT_TRUE(test::close(std::span(actual.q).first(wanted.q.size()), wanted.q, 2e-6));
  EXPECT_TRUE(test::untouched(std::span(actual.q).subspan(wanted.q.size())));
  expect_cache(actual.keys, wanted.keys, cache_tolerance);
  expect_cache(actual.values, wanted.values, cache_tolerance);
}

QkvRopeShape shape_of(uint32_t heads, uint32_t kv_heads, uint32_t head_dim, spec::Rope rope,
                      bool key_is_value = false) {
  return {heads, kv_heads, head_dim, true, key_is_value, epsilon, rope};
}
QkvRopeShape sharing(uint32_t heads, uint32_t head_dim, spec::Rope rope, double query_scale = 1) {
  return {heads, 1, head_dim, false, false, epsilon, rope, true, query_scale};
}
QkvRopeShape gemma3(uint32_t heads, uint32_t kv_heads, uint32_t head_dim, spec::Rope rope,
                    double query_scale) {
  return {heads, kv_heads, head_dim, true, false, epsilon, rope, false, query_scale};
}

INSTANTIATE_TEST_SUITE_P(
    All, QkvRopeCases,
    ::testing::Values(
        Case{shape_of(4, 1, 64, {1e4, 32}), KvType::f32, 16, 3, 5, "atlas sliding"},
        Case{shape_of(4, 1, 128, {1e6, 16}), KvType::f32, 16, 3, 5, "atlas full: partly rotated"},
        Case{shape_of(8, 1, 512, {1e6, 64}), KvType::f16, 16, 0, 8, "E2B full, f16"},
        Case{shape_of(8, 2, 256, {1e4, 128}), KvType::f16, 9, 700, 7, "E4B sliding, f16, a ring"},
        Case{shape_of(4, 2, 16, {1e4, 8}), KvType::f32, 5, 1003, 5, "a ring far beyond its slots"},
        Case{shape_of(4, 2, 32, {1e6, 3}), KvType::f32, 8, 2, 3, "an odd count of pairs"},
        Case{shape_of(6, 3, 20, {1e4, 10}), KvType::f16, 8, 2, 3, "no powers of two"},
        Case{shape_of(4, 2, 32, {1e6, 4}, true), KvType::f32, 8, 6, 4, "k_eq_v"},
        Case{shape_of(4, 1, 64, {1e6, 8}, true), KvType::f16, 8, 6, 4, "k_eq_v in f16"},
        Case{sharing(8, 512, {1e6, 64}), KvType::f16, 8, 40, 3, "a layer that shares KV"},
        Case{gemma3(4, 1, 256, {1e4, 128}, 0.0625), KvType::f16, 9, 700, 5, "Gemma 3 270M sliding"},
        Case{gemma3(4, 2, 32, {1e6, 16, 8}, 0.2), KvType::f32, 16, 3, 5,
             "values as they are, scaled"},
        Case{sharing(4, 64, {1e6, 32, 8}, 0.3), KvType::f32, 8, 40, 3, "scaled queries alone"},
        Case{shape_of(4, 1, 64, {1e4, 32}), KvType::f32, 8, 8000, 2, "a late position"},
        Case{shape_of(4, 1, 64, {1e4, 32}), KvType::f32, 8, 3, 0, "a stopped step"},
        Case{sharing(4, 64, {1e4, 32}), KvType::f32, 8, 3, 0, "a stopped step that shares KV"}));

// head_dim 512, theta 1e6, a quarter rotated: pair 1 turns by 1e6^(-2/512) = 0.947464 at position
// 1, pairs 64 to 255 do not turn.
TEST(QkvRope, TurnsEachPairByItsOwnAngle) {
  const Case c = {shape_of(1, 1, 512, {1e6, 64}), KvType::f32, 4, 1, 1, ""};
  Inputs in = {std::vector<float>(size_t{max_rows} * 3 * 512), std::vector<float>(512, 1.0f),
               std::vector<float>(512, 1.0f)};
  for (size_t i = 0; i < in.qkv.size(); ++i) in.qkv[i] = i % 512 < 256 ? 1.0f : 0.0f;
  for (const Outputs& out : {on_gpu(c, in), expected(c, in)}) {
    for (std::span<const float> head :
         {std::span(out.q).first(512), std::span(out.keys).subspan(512, 512)}) {
      const auto angle = [&](size_t pair) { return std::atan2(head[pair + 256], head[pair]); };
      EXPECT_NEAR(angle(0), 1.0, 1e-6);
      EXPECT_NEAR(angle(1), 0.947464, 1e-6);
      EXPECT_NEAR(angle(63), 0.0333762, 1e-6);  // 1e6^(-126/512)
      for (size_t pair = 64; pair < 256; ++pair) EXPECT_EQ(head[pair + 256], 0.0f) << pair;
      EXPECT_NEAR(head[200], std::sqrt(2.0), 3e-6);
    }
    EXPECT_EQ(out.values[512 + 256], 0.0f);  // v does not turn
  }
}

TEST(QkvRope, AnglesAreOfThePositionAndThePair) {
  const std::vector<float> angles = rope_angles({1e4, 2}, 4, 8001);
  ASSERT_EQ(angles.size(), 8001u * 4);
  EXPECT_EQ(angles[0], 1.0f);
  EXPECT_EQ(angles[1], 0.0f);
  EXPECT_FLOAT_EQ(angles[4 * 8000], float(std::cos(8000.0)));
  EXPECT_FLOAT_EQ(angles[4 * 8000 + 3], float(std::sin(80.0)));  // 1e4^(-2/4) = 1/100
  const std::vector<float> scaled = rope_angles({1e4, 2, 8}, 4, 8001);
  EXPECT_FLOAT_EQ(scaled[4 * 8000], float(std::cos(1000.0)));
  EXPECT_FLOAT_EQ(scaled[4 * 8000 + 3], float(std::sin(10.0)));
}

TEST(QkvRope, ClampsWhatF16CannotHold) {
  const Case c = {shape_of(1, 1, 16, {1e4, 8}), KvType::f16, 2, 0, 1, ""};
  Inputs in = make_inputs(c);
  in.k_norm.assign(16, 1e6f);
  const Outputs actual = on_gpu(c, in);
  const Outputs wanted = expected(c, in);
  EXPECT_TRUE(
      test::close(std::span(actual.keys).first(16), std::span(wanted.keys).first(16), 0x1p-10));
  float largest = 0;
  for (size_t i = 0; i < 16; ++i) largest = std::max(largest, std::abs(actual.keys[i]));
  EXPECT_EQ(largest, 65504.0f);
}

TEST(QkvRope, ARowHasTheSameBitsWhateverRowsAreBesideIt) {
  for (KvType type : {KvType::f16, KvType::f32}) {
    Case c = {shape_of(4, 2, 128, {1e6, 16}), type, 16, 20, 7, ""};
    const Inputs in = make_inputs(c);
    const size_t row_size = size_t{c.sources()} * c.shape.head_dim;
    const size_t q_size = size_t{c.shape.heads} * c.shape.head_dim;
    const size_t slot_size = size_t{c.shape.kv_heads} * c.shape.head_dim;
    const Outputs seven = on_gpu(c, in);
    c.rows = 3;
    const Outputs three = on_gpu(c, in);
    EXPECT_TRUE(test::same_bits(std::span(three.q).first(3 * q_size),
                                std::span(seven.q).first(3 * q_size)));
    c.rows = 1;
    for (uint32_t row = 0; row < 7; ++row) {
      c.position = 20 + row;
      Inputs alone = in;
      std::copy_n(&in.qkv[row * row_size], row_size, alone.qkv.begin());
      const Outputs one = on_gpu(c, alone);
      const size_t slot = size_t{c.position % c.slots} * slot_size;
      const auto same = [&](const std::vector<float>& a, size_t a_at, const std::vector<float>& b,
                            size_t b_at, size_t size) {
        return test::same_bits(std::span(a).subspan(a_at, size), std::span(b).subspan(b_at, size));
      };
      EXPECT_TRUE(same(one.q, 0, seven.q, row * q_size, q_size));
      EXPECT_TRUE(same(one.keys, slot, seven.keys, slot, slot_size));
      EXPECT_TRUE(same(one.values, slot, seven.values, slot, slot_size));
    }
  }
}

TEST(QkvRope, RefusesShapesItsKernelsAreNotBuiltFor) {
  gpu::Device& device = test::test_device();
  const gpu::Buffer step = test::upload(Step{.rows = 1});
  const gpu::Buffer data = test::poisoned(4096), q = test::poisoned(4096);
  const QkvRope good = {.heads = 4,
                        .head_dim = 16,
                        .rotated_pairs = 8,
                        .owns_kv = false,
                        .epsilon = epsilon,
                        .step = step.view(),
                        .qkv = data.view(),
                        .q_norm = data.view(),
                        .angles = data.view(),
                        .q = q.view(),
                        .max_rows = 1};
  gpu::CommandList commands(device);
  EXPECT_TRUE(record(commands, good));
  QkvRope bad = good;
  bad.head_dim = 18;
  EXPECT_FALSE(record(commands, bad));
  bad = good, bad.rotated_pairs = 9;
  EXPECT_FALSE(record(commands, bad));
  bad = good, bad.rotated_pairs = 0;
  EXPECT_FALSE(record(commands, bad));
  bad = good, bad.owns_kv = true, bad.kv_heads = 1;  // no cache to write to
  EXPECT_FALSE(record(commands, bad));
  bad = good, bad.max_rows = 17;  // q would need 4352 bytes
  EXPECT_FALSE(record(commands, bad));
}

}  // namespace
}  // namespace tandem::ops
