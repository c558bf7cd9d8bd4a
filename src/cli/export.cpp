// tandem export: a checkpoint, with its assistant's if there is one, to an artifact; or an
// assistant's onto an artifact.
#include "exporter/export.h"

#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/interrupts.h"
#include "cli/output.h"
#include "cli/provenance.h"
#include "text/utf8.h"

namespace tandem::cli {
namespace {

struct Flags {
  std::string checkpoint;
  std::string assistant;
  std::string onto;
  std::string out;
  std::string published;
  std::string assistant_published;
  std::string matrix;
  std::string table;
  std::vector<std::string> tensors;
  std::optional<uint32_t> context_bound;
  exporter::ExportOptions options;
};

Result<spec::WeightType> read_type(std::string_view text) {
  const std::optional<spec::WeightType> type = spec::weight_type(text);
  if (type) return *type;
  return fail(ErrorCode::invalid_argument, "type {}: expected q4_0, q8_0, f16 or f32", text);
}

Result<void> read_types(const Flags& flags, exporter::RecipeOptions& recipe) {
  if (!flags.matrix.empty()) {
    TRY_ASSIGN(recipe.matrix, read_type(flags.matrix));
  }
  if (!flags.table.empty()) {
    TRY_ASSIGN(recipe.table, read_type(flags.table));
  }
  for (const std::string& tensor : flags.tensors) {
    const size_t split = tensor.find('=');
    if (split == std::string::npos) {
      return fail(ErrorCode::invalid_argument, "--tensor {}: expected NAME=TYPE", tensor);
    }
    TRY_ASSIGN(const spec::WeightType type, read_type(tensor.substr(split + 1)));
    if (!recipe.tensors.emplace(tensor.substr(0, split), type).second) {
      return fail(ErrorCode::invalid_argument,
                  "--tensor {}: expected each tensor once, found it again",
                  tensor.substr(0, split));
    }
  }
  return {};
}

// "REPOSITORY@REVISION"; nothing of nothing.
Result<std::optional<artifact::Published>> read_published(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const size_t split = text.rfind('@');
  if (split == text.npos || split == 0 || split + 1 == text.size()) {
    return fail(ErrorCode::invalid_argument, "published {}: expected REPOSITORY@REVISION", text);
  }
  if (text::valid_utf8(text) != text.size())
    return fail(ErrorCode::invalid_argument, "published {}: expected UTF-8", text);
  return artifact::Published{std::string(text.substr(0, split)),
                             std::string(text.substr(split + 1))};
}

// Of a checkpoint and what is exported with it, or of an assistant onto an artifact.
Result<exporter::ExportReport> run_export(const Flags& flags) {
  const auto progress = progress_bar("exporting");
  if (flags.onto.empty()) {
    if (flags.checkpoint.empty())
      return fail(ErrorCode::invalid_argument, "checkpoint: expected its folder, found nothing");
    return exporter::export_checkpoint(flags.checkpoint, flags.out, flags.options, progress);
  }
  return exporter::export_assistant(flags.assistant, flags.onto, flags.out, flags.options,
                                    progress);
}

void print_report(const Flags& flags, const exporter::ExportReport& report) {
  uint64_t exact = 0, raised = 0;
  for (const exporter::TensorReport& tensor : report.tensors) {
    exact += tensor.exact ? 1 : 0;
    raised += tensor.raised;
  }
  fmt::print("{}: {} of weights, {} of {} exactly as in the checkpoint\n", printable(flags.out),
             megabytes(report.bytes), exact, counted(report.tensors.size(), "tensor"));
  fmt::print("recipe: matrices {}, tables {}, vectors {}", spec::name(report.recipe.matrix),
             spec::name(report.recipe.table), spec::name(report.recipe.vector));
  for (const auto& [tensor, type] : report.recipe.overrides) {
    fmt::print(", {} {}", tensor, spec::name(type));
  }
  fmt::print("\n");
  if (raised > 0) {
    fmt::print("{} too small for a normal fp16: raised to the smallest one\n",
               counted(raised, "scale"));
  }
  for (const artifact::IgnoredTensor& tensor : report.ignored) {
    fmt::print("ignored {} ({})\n", printable(tensor.name), printable(tensor.rule));
  }
  fmt::print("{}", ignored_settings(report.ignored_settings));
  fmt::print("{}digest {}\n", describe(report.provenance), report.digest.hex());
}

Result<void> run(Flags flags) {
  TRY(read_types(flags, flags.options.weights.recipe));
  flags.options.context_bound = flags.context_bound;
  if (!flags.assistant.empty()) flags.options.assistant = flags.assistant;
  TRY_ASSIGN(flags.options.published, read_published(flags.published));
  TRY_ASSIGN(flags.options.assistant_published, read_published(flags.assistant_published));
  const Interrupts interrupts(ending_signals);
  flags.options.weights.cancel = &interrupted;
  TRY_ASSIGN(const exporter::ExportReport report, run_export(flags));
  print_report(flags, report);
  return {};
}

}  // namespace

Command export_checkpoint(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app = parent.add_subcommand(
      "export", "Make an artifact of a Hugging Face checkpoint folder or a GGUF file");
  CLI::Option* checkpoint =
      app->add_option("checkpoint", flags->checkpoint,
                      "Folder with config.json, tokenizer.json and *.safetensors, or a GGUF file");
  app->add_option("-o,--out", flags->out,
                  "The artifact folder to make; one that exists is not replaced")
      ->required();
  CLI::Option* assistant = app->add_option(
      "--assistant", flags->assistant,
      "Folder or GGUF file of the model's MTP assistant, to go into the same artifact");
  CLI::Option* onto = app->add_option("--onto", flags->onto,
                                      "An artifact without an assistant, to which --assistant is "
                                      "attached: an artifact of its own, without the model's "
                                      "weights")
                          ->needs(assistant)
                          ->excludes(checkpoint);
  app->add_option("--published", flags->published,
                  "Where the checkpoint was published, as REPOSITORY@REVISION (default: as its pin "
                  "says)")
      ->needs(checkpoint);
  app->add_option("--assistant-published", flags->assistant_published,
                  "The same of the assistant's checkpoint")
      ->needs(assistant);
  app->add_option("--sources", flags->options.sources,
                  "A file of your own pins, in the form of models/sources.json");
  const auto types = CLI::IsMember({"q4_0", "q8_0", "f16", "f32"});
  app->add_option("--matrix", flags->matrix,
                  "Type of matrices (default: q4_0; of a GGUF file its own)")
      ->check(types);
  app->add_option("--table", flags->table,
                  "Type of the embedding tables (default: q4_0 where that is exact, else q8_0)")
      ->check(types);
  app->add_option("--tensor", flags->tensors,
                  "Type of one tensor: NAME=TYPE, as `tandem inspect --tensors` names it")
      ->allow_extra_args(false);
  app->add_option("--context-bound", flags->context_bound,
                  "Largest default context (default: 8960, or what the config allows)")
      ->excludes(onto)
      ->check(CLI::Range(uint32_t{1}, UINT32_MAX));
  app->add_option("--input-bound", flags->options.input_bound, "Default rows of a prefill chunk")
      ->excludes(onto)
      ->check(CLI::Range(uint32_t{1}, UINT32_MAX))
      ->capture_default_str();
  app->add_option("--threads", flags->options.weights.threads,
                  "Threads (default: one for each core)");
  app->footer(
      "Weights that lie on the Q4_0 grid, as those of QAT checkpoints do, are kept exactly.");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace tandem::cli
