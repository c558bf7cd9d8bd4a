// How fast a tokenizer compiles, loads and encodes: bench_tokenizer tokenizer.json [text file...].
// Each figure is the best of five runs, in seconds of processor time.
#include "text/tokenizer.h"

#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace tandem::text;

struct Sample {
  std::string name;
  std::string text;
};

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string repeat(std::string_view unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double best_seconds(const std::function<void()>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 5; ++run) {
    const double begin = processor_seconds();
    work();
    best = std::min(best, processor_seconds() - begin);
  }
  return best;
}

std::vector<Sample> samples() {
  constexpr size_t bytes = 1'000'000;
  return {
      {"prose", repeat("The quick brown fox jumps over 13 lazy dogs, and nobody minds. ", bytes)},
      {"code",
       repeat("    for (int i = 0; i < n; ++i) {\n\t\tsum += x[i] * y[i];\n    }\n\n", bytes)},
      {"japanese", repeat("日本の首都はどこですか？東京は日本の首都です。", bytes)},
      {"emoji", repeat("👩‍👩‍👧‍👦😀👍🇫🇷 ", bytes)},
      {"html", repeat("<table><tr><td>1</td></tr></table>\n", bytes)},
      {"spaces", repeat(" ", bytes)},
      {"newlines", repeat("\n", bytes)},
      {"a", repeat("a", bytes)},
      {"abc", repeat("abcdefghijklmnopqrstuvwxyz", bytes)},
      {"<", repeat("<", bytes)},
      {"<unused", repeat("<unused", bytes)},
      {"separators", repeat("\u2581", bytes)},
      {"thethe", repeat("the", bytes)},
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "use: bench_tokenizer tokenizer.json [text file...]\n");
    return 2;
  }
  const std::string json = read(argv[1]);
  const double begin = processor_seconds();
  const auto table = compile_tokenizer(json, argv[1]);
  const double compile = processor_seconds() - begin;
  if (!table) {
    fmt::print(stderr, "{}\n", table.error().message);
    return 1;
  }
  const auto tokenizer = Tokenizer::load(*table);
  const double load = best_seconds([&] { (void)Tokenizer::load(*table); });
  fmt::print("{} tokens; compiled in {:.3f} s to {} bytes; loaded in {:.4f} s\n", tokenizer->size(),
             compile, table->size(), load);

  std::vector<Sample> texts = samples();
  for (int i = 2; i < argc; ++i) texts.push_back({argv[i], read(argv[i])});
  for (const auto& [name, text] : texts) {
    size_t tokens = 0;
    const double seconds = best_seconds(
        [&] { tokens = tokenizer->encode(text).value_or(std::vector<uint32_t>()).size(); });
    fmt::print("{:>12}: {:6.1f} MB/s, {} bytes, {} tokens\n", name,
               static_cast<double>(text.size()) / seconds / 1e6, text.size(), tokens);
  }
  return 0;
}
