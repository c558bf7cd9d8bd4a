#include "exporter/synthesize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "artifact/token_ordering.h"
#include "base/error.h"
#include "base/half.h"
#include "base/parallel.h"
#include "exporter/metadata.h"
#include "exporter/synthetic_tokenizer.h"
#include "exporter/weights.h"
#include "spec/pair.h"

namespace tandem::exporter {
namespace {

constexpr uint64_t chunk_bytes = 4 * artifact::piece_bytes;

// The numbers of a plane: of this magnitude, give or take a quarter.
struct Numbers {
  double magnitude;
  bool signs;  // half of them are negative
};

// A product with such a matrix keeps the size of its input: the weights' mean square is 1 /
// columns. Random nibbles, q - 8, have the mean square 21.5, and a mean of -1/2, which the signs of
// the scales take away. Only vectors (norms and layer scalars) are f32.
Numbers numbers(spec::WeightType type, uint32_t columns) {
  if (type == spec::WeightType::f32) return {1, false};
  const double mean_square = type == spec::WeightType::q4_0 ? 21.5 : 1;
  return {1 / std::sqrt(mean_square * columns), true};
}

// Splitmix64's mixing of a counter.
uint64_t random_bits(uint64_t key, uint64_t counter) {
  uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

uint64_t plane_key(uint64_t seed, const std::string& tensor, std::string_view plane) {
  const Digest digest = sha256(fmt::format("{} {}.{}", seed, tensor, plane));
  uint64_t key = 0;
  std::memcpy(&key, digest.bytes.data(), sizeof(key));
  return key;
}

float random_number(const Numbers& numbers, uint64_t bits) {
  const double unit = static_cast<double>(bits >> 11) * 0x1p-53;  // [0, 1)
  const double number = numbers.magnitude * (0.75 + 0.5 * unit);
  return static_cast<float>(numbers.signs && (bits & 1) != 0 ? -number : number);
}

// Fills bytes that begin at `offset` of a plane; `make` gives the plane's i-th word.
template <class Make>
void fill_words(uint64_t offset, std::span<std::byte> bytes, const Make& make) {
  using Word = decltype(make(uint64_t{}));
  for (size_t at = 0; at < bytes.size(); at += sizeof(Word)) {
    const Word word = make((offset + at) / sizeof(Word));
    std::memcpy(&bytes[at], &word, sizeof(Word));
  }
}

void fill(std::string_view dtype, const Numbers& numbers, uint64_t key, uint64_t offset,
          std::span<std::byte> bytes) {
  const auto bits = [&](uint64_t i) { return random_bits(key, i); };
  const auto f32 = [&](uint64_t i) { return random_number(numbers, bits(i)); };
  const auto f16 = [&](uint64_t i) { return to_half(f32(i)); };
  if (dtype == "U8") fill_words(offset, bytes, bits);
  if (dtype == "F16") fill_words(offset, bytes, f16);
  if (dtype == "F32") fill_words(offset, bytes, f32);
}

// Each token once, in random order.
std::vector<uint32_t> random_order(uint64_t key, uint32_t tokens) {
  std::vector<uint32_t> order(tokens);
  std::iota(order.begin(), order.end(), 0);
  for (uint32_t i = tokens; i > 1; --i) std::swap(order[i - 1], order[random_bits(key, i) % i]);
  return order;
}

uint64_t plane_bytes(const std::vector<BoundTensor>& tensors, const artifact::Recipe& recipe) {
  uint64_t bytes = 0;
  for (const BoundTensor& tensor : tensors) {
    for (const spec::PlaneLayout& plane : spec::planes(recipe.of(tensor.row), tensor.row.columns))
      bytes += plane.bytes_per_row * tensor.row.rows;
  }
  return bytes;
}

class RandomWriter {
 public:
  RandomWriter(const SynthesizeOptions& options, const artifact::Progress& progress,
               uint64_t total_bytes)
      : options_(options), progress_(progress), total_bytes_(total_bytes), chunk_(chunk_bytes) {}

  // The certificate of the token ordering, once it has been written.
  std::optional<Digest> token_ordering() const { return token_ordering_; }

  Result<void> write(const artifact::TensorEntry& tensor, ShardWriter& shard) {
    const std::vector<spec::PlaneLayout> planes = spec::planes(tensor.type, tensor.columns);
    if (tensor.type == spec::WeightType::u32) return write_order(tensor, planes[0], shard);
    for (size_t i = 0; i < planes.size(); ++i) {
      TRY(shard.pad_to(tensor.planes[i].offset));
      TRY(write_plane(tensor, planes[i], shard));
    }
    return {};
  }

 private:
  Result<void> write_order(const artifact::TensorEntry& tensor, const spec::PlaneLayout& plane,
                           ShardWriter& shard) {
    const std::vector<uint32_t> order =
        random_order(plane_key(options_.seed, tensor.name, plane.suffix), tensor.columns);
    const std::span bytes = std::as_bytes(std::span(order));
    artifact::TokenOrderingCheck check(tensor.columns);
    TRY(check.add(bytes));
    TRY_ASSIGN(token_ordering_, check.finish());
    TRY(shard.pad_to(tensor.planes[0].offset));
    TRY(shard.write(bytes));
    return done(bytes.size());
  }

  Result<void> write_plane(const artifact::TensorEntry& tensor, const spec::PlaneLayout& plane,
                           ShardWriter& shard) {
    const uint64_t key = plane_key(options_.seed, tensor.name, plane.suffix);
    const Numbers drawn = numbers(tensor.type, tensor.columns);
    const uint64_t bytes = plane.bytes_per_row * tensor.rows;
    for (uint64_t offset = 0; offset < bytes; offset += chunk_bytes) {
      const std::span chunk = std::span(chunk_).first(std::min(chunk_bytes, bytes - offset));
      const auto fill_part = [&](uint64_t begin, uint64_t end) {
        fill(plane.dtype, drawn, key, offset + begin, chunk.subspan(begin, end - begin));
      };
      parallel_for(chunk.size(), 1 << 16, fill_part, options_.threads);
      TRY(shard.write(chunk));
      TRY(done(chunk.size()));
    }
    return {};
  }

  Result<void> done(uint64_t bytes) {
    done_bytes_ += bytes;
    if (progress_) progress_(done_bytes_, total_bytes_);
    return check_cancel(options_.cancel);
  }

  const SynthesizeOptions& options_;
  const artifact::Progress& progress_;
  uint64_t total_bytes_;
  uint64_t done_bytes_ = 0;
  std::vector<std::byte> chunk_;
  std::optional<Digest> token_ordering_;
};

// Writes all shards and fills the manifest's recipe, tensors and shards.
Result<void> write_random_weights(const SynthesizeOptions& options, Publication& publication,
                                  artifact::Manifest& manifest,
                                  const artifact::Progress& progress) {
  std::vector<BoundTensor> tensors;
  for (spec::Tensor& row : artifact::registry(manifest)) tensors.push_back({std::move(row), {}});
  const auto on_grid = [](const BoundTensor&) -> Result<bool> { return true; };
  TRY_ASSIGN(manifest.recipe, make_recipe({}, tensors, on_grid));
  RandomWriter writer(options, progress, plane_bytes(tensors, manifest.recipe));
  const auto write = [&](const BoundTensor&, const artifact::TensorEntry& tensor,
                         ShardWriter& shard) { return writer.write(tensor, shard); };
  TRY(write_shards(tensors, {.threads = options.threads}, publication, manifest, write));
  if (manifest.mtp) manifest.mtp->token_ordering = writer.token_ordering();
  return {};
}

artifact::Origin random_origin(const std::string& canonical_config, uint64_t seed) {
  return {std::string(exporter_name), sha256(canonical_config), {}, {}, {}, seed};
}

}  // namespace

Result<SynthesizeReport> synthesize(const spec::Config& config, const std::filesystem::path& out,
                                    const SynthesizeOptions& options,
                                    const artifact::Progress& progress) {
  const Texts texts{spec::canonical_config(config), synthetic_tokenizer(config), {}, {}};
  TRY_ASSIGN(const std::string tokenizer, compile_tokenizer(texts, config));
  const std::optional<spec::AssistantConfig>& assistant = options.assistant;
  if (assistant) TRY(spec::check_pair(config, *assistant, "assistant"));
  TRY_ASSIGN(Publication publication, Publication::begin(out));
  artifact::Manifest manifest = begin_manifest(config, texts, tokenizer);
  artifact::Receipt receipt;
  receipt.target = random_origin(texts.config, options.seed);
  manifest.origin = origin_digest(*receipt.target);
  if (assistant) {
    receipt.assistant = random_origin(spec::canonical_config(*assistant), options.seed);
    manifest.mtp = artifact::Mtp{*assistant, origin_digest(*receipt.assistant), {}};
  }
  TRY(write_random_weights(options, publication, manifest, progress));
  TRY_ASSIGN(const artifact::LoadPlan plan,
             make_load_plan(manifest, assistant ? artifact::View::mtp : artifact::View::plain));
  TRY(publish(publication, manifest, artifact_files(texts, tokenizer), std::move(receipt),
              {options.threads, options.cancel, {}}));
  return SynthesizeReport{sha256(manifest_text(manifest)), plan.bytes};
}

}  // namespace tandem::exporter
