#include "optim/parallel/forecast.h"

#include <algorithm>

#include "engine/check.h"

namespace tritgrad {
namespace {

// A step as rank 0 sees it.
struct Step {
  int ranks;
  int parts;

  int others() const { return ranks - 1; }
  int own_parts() const { return Parts::of_rank(0, ranks, parts).count(); }
  // Of n numbers, a rank sends addends to every owner of a chunk, and its own result to everybody.
  std::int64_t summed(std::int64_t n, WireCode addends, WireCode result) const {
    const Partition partition{n, ranks};
    std::int64_t bytes = others() * wire_bytes(result, partition.size(0));
    for (int r = 1; r < ranks; ++r) bytes += wire_bytes(addends, partition.size(r));
    return bytes;
  }
  std::int64_t summed(std::int64_t n, WireCode code) const { return summed(n, code, code); }
  std::int64_t gathered(std::int64_t n) const {
    return others() * wire_bytes(WireCode::kFp32, own_parts() * n);
  }
  std::int64_t voted(std::int64_t n, bool majority) const {
    return summed(n, vote_code(std::max(1, own_parts()), false),
                  vote_code(majority ? 1 : parts, true));
  }
};

std::int64_t error_bytes(std::int64_t n, int ranks) {
  return wire_bytes(WireCode::kFp32, n + Partition{n, ranks}.size(0));
}

// A rank keeps which coordinates take part, and, under ECO, their momentum without errors.
std::int64_t momentum_bytes(std::int64_t n, EcoForm eco) {
  return n + (eco == EcoForm::kOff ? 0 : wire_bytes(WireCode::kFp32, n));
}

}  // namespace

bool votes_fit(const std::vector<ParameterSpec>& plan, const Optimizer::GroupOf& group_of,
               const ParallelSpec& spec, int parts) {
  return parts <= kMostVotes ||
         std::none_of(plan.begin(), plan.end(), [&](const ParameterSpec& parameter) {
           return parameter.trainable() &&
                  exchange_of(spec, parameter, group_of(parameter)) == ExchangeKind::kVotes;
         });
}

void check_votes_fit(const std::vector<ParameterSpec>& plan, const Optimizer::GroupOf& group_of,
                     const ParallelSpec& spec, int parts) {
  check(votes_fit(plan, group_of, spec, parts), "votes of ", parts,
        " parts of a batch cannot be added up: sums of votes have 8 bits, at most ", kMostVotes,
        " parts; take fewer ranks or fewer parts for each");
}

std::int64_t kept_bytes(ExchangeKind kind, std::int64_t n, FormatKind gradients) {
  switch (kind) {
    case ExchangeKind::kSum:
      return wire_bytes(wire_code(gradients), n);
    case ExchangeKind::kOrdered:
      return 0;
    case ExchangeKind::kVotes:
      return n;
    default:
      return wire_bytes(WireCode::kFp32, n);
  }
}

TrafficForecast forecast_traffic(const std::vector<ParameterSpec>& plan,
                                 const Optimizer::GroupOf& group_of, const ParallelSpec& spec,
                                 int ranks, int parts, FormatKind gradients) {
  check_votes_fit(plan, group_of, spec, parts);
  const Step step{ranks, parts};
  TrafficForecast forecast;
  std::int64_t reductions = 1;  // the statistics
  std::int64_t statistics = 0;
  for (const ParameterSpec& parameter : plan) {
    const std::int64_t n = parameter.shape.size();
    if (!parameter.trainable()) {
      statistics += n;
      continue;
    }
    ++reductions;
    switch (exchange_of(spec, parameter, group_of(parameter))) {
      case ExchangeKind::kSum:
        forecast.gradients += step.summed(n, wire_code(gradients));
        break;
      case ExchangeKind::kOrdered:
        forecast.gradients += step.gathered(n);
        break;
      case ExchangeKind::kVotes:
        forecast.gradients += step.voted(n, spec.majority);
        break;
      case ExchangeKind::kInt8:
        forecast.gradients += step.summed(n, WireCode::kInt8);
        forecast.state += error_bytes(n, ranks);
        break;
      case ExchangeKind::kMomentum:
        forecast.gradients += step.summed(n, spec.squeeze);
        forecast.warmup += step.summed(n, WireCode::kFp32);
        forecast.state += error_bytes(n, ranks) + momentum_bytes(n, group_of(parameter).eco);
        break;
    }
  }
  forecast.sums = step.others() * (static_cast<std::int64_t>(sizeof(SentSums)) + reductions);
  forecast.statistics = statistics_are_exact(spec, ranks)
                            ? step.gathered(statistics)
                            : step.summed(statistics, WireCode::kFp32);
  return forecast;
}

}  // namespace tritgrad
