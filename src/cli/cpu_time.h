// How long processors have worked for the calling thread.
#pragma once

namespace tandem::cli {

double thread_cpu_ms();

}  // namespace tandem::cli
