// Answers one question with an artifact: opens it, streams the answer, prints what it took.
#include <tandem/engine.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

// An error has a code to act on and a message to read.
int report(const tandem::Error& error) {
  const std::string code(name(error.code));
  std::fprintf(stderr, "answer: %s [%s]\n", error.message.c_str(), code.c_str());
  return EXIT_FAILURE;
}

int answer(const std::string& artifact, const tandem::EngineOptions& options,
           const std::string& question) {
  // Every byte is verified before it reaches the GPU; on any failure nothing stays allocated.
  tandem::Result<tandem::Engine> engine = tandem::Engine::open(artifact, options);
  if (!engine) return report(engine.error());

  const tandem::Message message{"user", question};
  const tandem::Result<std::vector<uint32_t>> prompt = engine->encode_chat({&message, 1});
  if (!prompt) return report(prompt.error());

  tandem::Result<tandem::Session> session = engine->session();
  if (!session) return report(session.error());

  const auto print = [](std::string_view piece) {
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    return std::fflush(stdout) == 0;  // false ends the answer
  };
  const tandem::Result<tandem::Generation> generation = session->generate(*prompt, {}, print);
  if (!generation) return report(generation.error());

  const tandem::GenerateStats& stats = generation->stats;
  const std::string stop(name(generation->stop));
  std::printf("\n\n%u prompt tokens, first token after %.0f ms\n", stats.prompt_tokens,
              stats.first_token_ms);
  std::printf("%u tokens at %.1f tokens/s on %s, ended by %s\n", stats.generated_tokens,
              stats.decode_tokens_per_second(), engine->info().adapter.c_str(), stop.c_str());
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  tandem::EngineOptions options;
  int first = 1;
  if (argc > 1 && std::string_view(argv[1]) == "--software") {
    options.adapter = "software";
    first = 2;
  }
  if (argc - first != 2) {
    std::fprintf(stderr, "usage: answer [--software] ARTIFACT QUESTION\n");
    return 2;
  }
  return answer(argv[first], options, argv[first + 1]);
}
