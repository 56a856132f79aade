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
  // A reduction sends share(n) to every owner of a chunk of n elements, and result(n) to everybody.
  template <typename Share, typename Result>
  std::int64_t reduced(std::int64_t n, const Share& share, const Result& result) const {
    const Partition partition{n, ranks};
    std::int64_t bytes = others() * result(partition.size(0));
    for (int r = 1; r < ranks; ++r) bytes += share(partition.size(r));
    return bytes;
  }
  std::int64_t summed(std::int64_t n, std::int64_t bytes_each) const {
    const auto bytes = [&](std::int64_t count) { return count * bytes_each; };
    return reduced(n, bytes, bytes);
  }
  std::int64_t compressed(std::int64_t n, Compression compression) const {
    const auto bytes = [&](std::int64_t count) { return compressed_bytes(compression, count); };
    return reduced(n, bytes, bytes);
  }
  std::int64_t gathered(std::int64_t n) const {
    return others() * own_parts() * n * static_cast<std::int64_t>(sizeof(float));
  }
  std::int64_t voted(std::int64_t n, bool majority) const {
    const VoteCode share = vote_code(std::max(1, own_parts()), false);
    const VoteCode result = vote_code(majority ? 1 : parts, true);
    return reduced(
        n, [&](std::int64_t count) { return vote_bytes(share, count); },
        [&](std::int64_t count) { return vote_bytes(result, count); });
  }
};

std::int64_t error_bytes(std::int64_t n, int ranks) {
  return (n + Partition{n, ranks}.size(0)) * static_cast<std::int64_t>(sizeof(float));
}

// A rank keeps which coordinates take part, and, under ECO, their momentum without errors.
std::int64_t momentum_bytes(std::int64_t n, EcoForm eco) {
  return n + (eco == EcoForm::kOff ? 0 : n * static_cast<std::int64_t>(sizeof(float)));
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
      return n * (gradients == FormatKind::kBf16 ? 2 : 4);
    case ExchangeKind::kOrdered:
      return 0;
    case ExchangeKind::kVotes:
      return n;
    default:
      return n * static_cast<std::int64_t>(sizeof(float));
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
        forecast.gradients += step.summed(n, gradients == FormatKind::kBf16 ? 2 : 4);
        break;
      case ExchangeKind::kOrdered:
        forecast.gradients += step.gathered(n);
        break;
      case ExchangeKind::kVotes:
        forecast.gradients += step.voted(n, spec.majority);
        break;
      case ExchangeKind::kInt8:
        forecast.gradients += step.compressed(n, Compression::kInt8);
        forecast.state += error_bytes(n, ranks);
        break;
      case ExchangeKind::kMomentum:
        forecast.gradients += step.compressed(n, spec.squeeze);
        forecast.warmup += step.summed(n, 4);
        forecast.state += error_bytes(n, ranks) + momentum_bytes(n, group_of(parameter).eco);
        break;
    }
  }
  forecast.sums = step.others() * (static_cast<std::int64_t>(sizeof(SentSums)) + reductions);
  forecast.statistics =
      statistics_are_exact(spec, ranks) ? step.gathered(statistics) : step.summed(statistics, 4);
  return forecast;
}

}  // namespace tritgrad
