#include "engine/prompt_sets.h"

namespace tandem::engine {
namespace {

constexpr std::string_view questions[] = {
    "What is the capital of Portugal?",
    "What is the currency of Norway?",
    "Which languages do people speak in Belgium?",
    "How large is Ghana?",
    "How many people live in Uruguay?",
    "Which countries border Laos?",
    "What is the highest point of Nepal?",
    "What does Chile export?",
    "What is the climate of Iceland like?",
    "When did Jamaica become independent?",
    "What are the largest cities of Vietnam?",
    "What kind of government does Jordan have?",
};

constexpr std::string_view profiles[] = {
    "Tell me about Portugal.",
    "Tell me about Ghana.",
    "Tell me about Nepal.",
    "Tell me about Uruguay.",
};

constexpr std::string_view texts[] = {
    "In the beginning of the year, the people of the island",
    "The old sailor looked at the sea and said",
    "Fellow citizens, the state of our country is",
    "The mountains in the north are covered with snow, and",
};

constexpr PromptSet sets[] = {
    {"questions", true, questions},
    {"profiles", true, profiles},
    {"free text", false, texts},
};

}  // namespace

std::span<const PromptSet> prompt_sets() { return sets; }

}  // namespace tandem::engine
