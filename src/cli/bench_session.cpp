#include "cli/bench_session.h"

#include "base/clock.h"
#include "base/error.h"
#include "cli/cpu_time.h"
#include "engine/bench.h"
#include "engine/session_sequence.h"
#include "ops/draft/draft.h"

namespace tandem::cli {

Result<BenchSession> BenchSession::make(Engine& engine) {
  TRY_ASSIGN(Session session, engine.session());
  return BenchSession(engine.info(), std::move(session));
}

Result<BenchRun> BenchSession::run(uint32_t prompt_tokens, uint32_t tokens, Mtp mtp) {
  const std::vector<uint32_t> prompt = engine::ordinary_tokens(info_->vocabulary, prompt_tokens);
  TRY(session_.start(prompt, {.max_tokens = tokens,
                              .ignore_eos = true,
                              .sampling = SampleOptions{.temperature = 0},
                              .mtp = mtp}));
  TRY(session_.step());
  const double start = now_ms(), start_cpu = thread_cpu_ms();
  while (session_.running()) TRY(session_.step());
  const double took = now_ms() - start, took_cpu = thread_cpu_ms() - start_cpu;
  BenchRun run{session_.generation(), took > 0 ? took_cpu / took : 0};
  if (run.generation.ids.size() == tokens) return run;
  return fail(ErrorCode::internal, "{} tokens after {} were asked for and {} came (ended by {})",
              tokens, prompt_tokens, run.generation.ids.size(), name(run.generation.stop));
}

Result<void> BenchSession::script(std::vector<uint32_t> drafts) {
  drafts.resize(info_->context + 1, ops::unscripted);
  return engine::SessionSequence::of(session_).script(drafts);
}

}  // namespace tandem::cli
