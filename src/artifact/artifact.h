// An artifact on disk: opened with all its metadata checked, and its weights delivered piece by
// piece, each verified before a byte of it is used.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "artifact/load_plan.h"
#include "artifact/manifest.h"
#include "artifact/receipt.h"
#include "artifact/weight_sink.h"

namespace tandem::artifact {

// Everything but the weights, checked: receipt and manifest, the files they bind (sizes and
// hashes), the sizes and headers of the shards.
class Artifact {
 public:
  // `view`: what `load` will load; none: all that there is. `attached`: the folder of an assistant
  // that was attached to this artifact, if one is to be opened with it.
  static Result<Artifact> open(const std::filesystem::path& folder,
                               std::optional<View> view = View::plain,
                               const std::filesystem::path& attached = {});

  // The same without a folder, and without a receipt: of the manifest's bytes, still without the
  // files that `add_metadata` checks and keeps.
  static Result<Artifact> in_memory(std::string_view manifest, std::optional<View> view);
  Result<void> add_metadata(std::string tokenizer, std::optional<std::string> generation_config);

  const std::filesystem::path& folder() const { return folder_; }
  const std::filesystem::path& attached() const { return attached_; }  // empty: none
  // The folder in which a shard lies.
  const std::filesystem::path& folder_of(const Shard& shard) const;
  const Manifest& manifest() const { return manifest_; }
  const spec::Config& config() const { return manifest_.config; }
  // With an attached assistant: where that comes from is its own receipt's.
  const Receipt& receipt() const { return receipt_; }
  const LoadPlan& plan() const { return plan_; }
  // Stands for the whole artifact: the sha256 of its manifest, which binds all else; with an
  // attached assistant, of that one's manifest, which binds the plain one, too.
  const Digest& digest() const { return digest_; }
  const std::string& tokenizer() const { return tokenizer_; }  // the compact table
  const std::optional<std::string>& chat_template() const { return chat_template_; }
  const std::optional<std::string>& generation_config() const { return generation_config_; }

 private:
  Result<void> attach(const std::filesystem::path& folder);
  Result<void> check_shards() const;

  std::filesystem::path folder_;
  std::filesystem::path attached_;
  Manifest manifest_;
  Receipt receipt_;
  LoadPlan plan_;
  Digest digest_;
  std::string tokenizer_;
  std::optional<std::string> chat_template_;
  std::optional<std::string> generation_config_;
};

// Called from the thread that loads or exports.
using Progress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

// Carries out the load plan: pieces are read and hashed on `threads` threads (0: one for each core)
// and their segments written in the plan's order. A piece with another hash fails with
// hash_mismatch before any byte of it is written, as does a token ordering that is not what the
// manifest certifies; one with a weight or scale that is not finite with malformed_artifact.
Result<void> load(const Artifact& artifact, WeightSink& sink, const Progress& progress = {},
                  unsigned threads = 0);

}  // namespace tandem::artifact
