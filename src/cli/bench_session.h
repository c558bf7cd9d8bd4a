// The session that `tandem bench` measures: fixed prompts, tokens chosen greedily, stop tokens
// ignored.
#pragma once

#include "tandem/engine.h"

namespace tandem::cli {

struct BenchRun {
  Generation generation;
  double busy = 0;  // the part of the time of decoding for which this thread had a processor
};

class BenchSession {
 public:
  static Result<BenchSession> make(Engine& engine);

  const EngineInfo& info() const { return *info_; }
  Session& session() { return session_; }

  // `tokens` tokens after the fixed prompt of a length, whose KV is reused if it is there.
  Result<BenchRun> run(uint32_t prompt_tokens, uint32_t tokens, Mtp mtp);
  // Drafts are replaced with these by position, as model::Sequence::script says; or with none: each
  // is the assistant's own. The engine was opened for it.
  Result<void> script(std::vector<uint32_t> drafts);

 private:
  BenchSession(const EngineInfo& info, Session session)
      : info_(&info), session_(std::move(session)) {}

  const EngineInfo* info_;
  Session session_;
};

}  // namespace tandem::cli
