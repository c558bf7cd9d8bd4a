// The matrix product in double on all cores.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/parallel.h"
#include "ops/linear/linear.h"

namespace tandem::ops {
namespace {

// Independent partial sums, which the compiler keeps in vector registers.
constexpr uint32_t lanes = 8;

double dot(std::span<const double> a, std::span<const double> b) {
  std::array<double, lanes> sums{};
  const size_t whole = a.size() / lanes * lanes;
  for (size_t i = 0; i < whole; i += lanes) {
    for (uint32_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (size_t i = whole; i < a.size(); ++i) sums[0] += a[i] * b[i];
  double sum = 0;
  for (double partial : sums) sum += partial;
  return sum;
}

double gelu(double x) {
  constexpr double sqrt_2_over_pi = 0.79788456080286535588;
  return x / 2 * (1 + std::tanh(sqrt_2_over_pi * (x + 0.044715 * x * x * x)));
}

}  // namespace

void linear_reference(const HostMatrix& weights, Epilogue epilogue, double softcap, uint32_t rows,
                      std::span<const float> x, std::span<const float> times, std::span<float> y) {
  const uint32_t columns = weights.columns;
  const bool pairs = epilogue == Epilogue::gelu_pair;
  const uint32_t outputs = pairs ? weights.rows / 2 : weights.rows;
  const std::vector<double> wide_x(x.begin(), x.begin() + size_t{rows} * columns);

  parallel_for(outputs, 16, [&](uint64_t begin, uint64_t end) {
    std::vector<float> narrow(columns);
    std::array<std::vector<double>, 2> w;  // the second only for pairs
    auto load = [&](uint32_t row, std::vector<double>& wide) {
      dequantize_row(weights, row, narrow);
      wide.assign(narrow.begin(), narrow.end());
    };
    for (uint64_t o = begin; o < end; ++o) {
      load(static_cast<uint32_t>(pairs ? 2 * o : o), w[0]);
      if (pairs) load(static_cast<uint32_t>(2 * o + 1), w[1]);
      for (uint32_t row = 0; row < rows; ++row) {
        const auto x_row = std::span(wide_x).subspan(size_t{row} * columns, columns);
        const size_t index = size_t{row} * outputs + o;
        double v = dot(w[0], x_row);
        switch (epilogue) {
          case Epilogue::none:
            break;
          case Epilogue::gelu_pair:
            v = gelu(v) * dot(w[1], x_row);
            break;
          case Epilogue::gelu_times:
            v = gelu(v) * double{times[index]};
            break;
          case Epilogue::softcap:
            v = softcap * std::tanh(v / softcap);
            break;
        }
        y[index] = static_cast<float>(v);
      }
    }
  });
}

}  // namespace tandem::ops
