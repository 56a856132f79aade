#include "optim/parallel/data_parallel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/check.h"
#include "engine/kernels/reductions.h"
#include "engine/names.h"

namespace tritgrad {
namespace {

constexpr Names<ParallelMethod, 4> kMethods{"data-parallel method",
                                            {{{ParallelMethod::kNone, "none"},
                                              {ParallelMethod::kAllreduce, "allreduce"},
                                              {ParallelMethod::kApmsqueeze, "apmsqueeze"},
                                              {ParallelMethod::kVotes, "votes"}}}};

// The second moment is stable when |v|_1, its bias corrected, has changed by less than this since
// 1 / (1 - beta2) updates ago (1-bit Adam's idea; the threshold is ours). It is looked at as often.
constexpr double kStable = 0.04;

double sum_of(const Storage& storage) {
  double sum = 0.0;
  for_each_block(storage.shape(), [&](const Block& block) {
    std::array<float, kBlock> numbers;
    storage.decode_master(block, numbers.data());
    sum += kernels().reductions.sum(numbers.data(), block.n);
  });
  return sum;
}

}  // namespace

std::string_view method_name(ParallelMethod method) { return kMethods.name(method); }
ParallelMethod parse_method(std::string_view name) { return kMethods.parse(name); }

ExchangeKind exchange_of(const ParallelSpec& spec, const ParameterSpec& parameter,
                         const GroupSpec& group) {
  switch (spec.method) {
    case ParallelMethod::kApmsqueeze:
      check_squeezable(parameter, group);
      return ExchangeKind::kMomentum;
    case ParallelMethod::kVotes:
      if (parameter.role != Role::kWeight) return ExchangeKind::kOrdered;
      return group.rule.kind == RuleKind::kSign ? ExchangeKind::kVotes : ExchangeKind::kInt8;
    default:
      return ExchangeKind::kSum;
  }
}

GroupSpec joint_group(const ParallelSpec& spec, GroupSpec group) {
  if (spec.method == ParallelMethod::kVotes && group.rule.kind == RuleKind::kSign) {
    group.rule.counted_votes = !spec.majority;
  }
  return group;
}

bool statistics_are_exact(const ParallelSpec& spec, int ranks) {
  return ranks == 1 || spec.method == ParallelMethod::kVotes;
}

DataParallel::DataParallel(Communicator& ranks, const ParallelSpec& spec, ParameterStore& store,
                           Optimizer& optimizer, FormatKind gradients)
    : ranks_(&ranks),
      reducer_(ranks),
      spec_(spec),
      optimizer_(&optimizer),
      statistics_(ranks, store, statistics_are_exact(spec, ranks.size())),
      sums_(static_cast<std::size_t>(ranks.size())) {
  for (Parameter& parameter : store) {
    if (parameter.spec().trainable()) exchanges_.push_back(make(parameter, gradients));
  }
  for (SentSums& sums : sums_) {
    sum_places_.push_back(std::as_writable_bytes(std::span(&sums, 1)));
  }
}

std::unique_ptr<GradientExchange> DataParallel::make(Parameter& parameter, FormatKind gradients) {
  const ExchangeKind kind = exchange_of(spec_, parameter.spec(), optimizer_->group(parameter));
  if (kind != ExchangeKind::kMomentum) {
    return make_exchange(kind, *ranks_, parameter, gradients, spec_.majority);
  }
  auto momentum =
      std::make_unique<MomentumExchange>(*ranks_, parameter, *optimizer_, spec_.squeeze);
  momenta_.push_back(momentum.get());
  return momentum;
}

void DataParallel::begin(const Parts& parts) {
  parts_ = parts.all;
  statistics_.begin(parts);
  for (const auto& one : exchanges_) one->begin(parts);
}

void DataParallel::begin_part(int part) { statistics_.begin_part(part); }

void DataParallel::collect(Parameter& parameter, int part) {
  for (const auto& one : exchanges_) {
    if (&one->parameter() == &parameter) return one->collect(part);
  }
}

BatchSums DataParallel::exchange(const BatchSums& own) {
  statistics_.end_parts();
  const std::int64_t before = ranks_->bytes_sent();
  const BatchSums all = add_up(own);
  if (!all.finite) return all;

  reductions_.assign(1, &statistics_.reduction());
  for (const auto& one : exchanges_) reductions_.push_back(&one->reduction());
  reducer_.reduce(reductions_);
  statistics_.deliver();
  for (const auto& one : exchanges_) one->deliver();

  sent_.last = ranks_->bytes_sent() - before;
  sent_.parts = parts_;
  sent_.total += sent_.last;
  ++sent_.steps;
  const bool warmup = spec_.method == ParallelMethod::kApmsqueeze && frozen_at_ == 0;
  ++sent_.counts[{sent_.parts, warmup}];
  return all;
}

BatchSums DataParallel::add_up(const BatchSums& own) {
  bool finite = own.finite;
  for (const auto& one : exchanges_) finite = finite && one->is_finite();
  const SentSums mine{finite ? own.loss : std::numeric_limits<double>::quiet_NaN(), own.score};
  ranks_->all_gather(std::as_bytes(std::span(&mine, 1)), sum_places_);
  BatchSums all;
  for (const SentSums& theirs : sums_) {
    all.loss += theirs.loss;
    all.score += theirs.score;
    all.finite = all.finite && std::isfinite(theirs.loss);
  }
  return all;
}

void DataParallel::end_step() {
  for (const auto& one : exchanges_) one->release();
  if (spec_.method != ParallelMethod::kApmsqueeze || frozen_at_ > 0) return;
  const std::int64_t done = optimizer_->steps_done() + 1;
  const bool over = spec_.warmup
                        ? static_cast<double>(done) >=
                              *spec_.warmup * static_cast<double>(optimizer_->total_steps())
                        : variance_is_stable();
  if (!over) return;
  freeze(done, updates_done());
  for (MomentumExchange* one : momenta_) one->begin_momentum();
}

std::int64_t DataParallel::updates_done() const {
  return optimizer_->steps_done() + 1 - optimizer_->skipped_updates();
}

bool DataParallel::variance_is_stable() {
  double beta2 = 0.0;
  for (const MomentumExchange* one : momenta_) {
    beta2 = std::max(beta2, optimizer_->group(one->parameter()).rule.beta2);
  }
  const std::int64_t span = std::lround(1.0 / (1.0 - beta2));
  const std::int64_t done = updates_done();
  if (done % span != 0) return false;
  double total = 0.0;
  for (const MomentumExchange* one : momenta_) {
    const double own_beta2 = optimizer_->group(one->parameter()).rule.beta2;
    total += sum_of(optimizer_->moment(one->parameter(), 1)) /
             (1.0 - std::pow(own_beta2, static_cast<double>(done)));
  }
  const double before = std::exchange(variance_before_, total);
  return before > 0.0 && std::abs(total - before) < kStable * before;
}

std::int64_t DataParallel::warmup_steps() const {
  if (spec_.method != ParallelMethod::kApmsqueeze) return 0;
  return frozen_at_ > 0 ? frozen_at_ : optimizer_->steps_done();
}

bool DataParallel::never_compressed() const {
  return spec_.method == ParallelMethod::kApmsqueeze && frozen_at_ == 0 &&
         optimizer_->steps_done() == optimizer_->total_steps();
}

void DataParallel::freeze(std::int64_t steps, std::int64_t updates) {
  frozen_at_ = steps;
  frozen_updates_ = updates;
  for (MomentumExchange* one : momenta_) one->freeze();
  optimizer_->freeze_variance(updates);
}

void DataParallel::forget_state() {
  saved_.clear();
  saved_warmup_ = Buffer();
}

void DataParallel::allocate_state(int ranks) {
  forget_state();
  saved_warmup_ = Buffer(sizeof(Warmup), Category::kWorkspace);
  for (const auto& one : exchanges_) {
    CompressedMean* mean = one->compressed();
    if (mean == nullptr) continue;
    const std::size_t bytes = mean->worker_error().size_bytes();
    saved_.push_back({mean, one->parameter().name() + "/dp/",
                      Buffer(bytes * static_cast<std::size_t>(ranks), Category::kWorkspace),
                      Buffer(bytes, Category::kWorkspace)});
  }
}

void DataParallel::gather_state() {
  const int count = ranks_->size();
  const bool first = ranks_->rank() == 0;
  if (first) {
    allocate_state(count);
    *saved_warmup_.as<Warmup>() = {static_cast<double>(frozen_at_),
                                   static_cast<double>(frozen_updates_), variance_before_};
  }
  auto saved = saved_.begin();
  for (const auto& one : exchanges_) {
    CompressedMean* mean = one->compressed();
    if (mean == nullptr) continue;
    const auto to_first = [&](std::span<const std::byte> own, const auto& place_of) {
      std::vector<std::span<const std::byte>> to(static_cast<std::size_t>(count));
      std::vector<std::span<std::byte>> from(static_cast<std::size_t>(count));
      to[0] = own;
      if (first) {
        for (int r = 0; r < count; ++r) {
          from[static_cast<std::size_t>(r)] = std::as_writable_bytes(place_of(r));
        }
      }
      ranks_->exchange(to, from);
    };
    const auto n = static_cast<std::size_t>(mean->partition().n);
    to_first(std::as_bytes(mean->worker_error()), [&](int r) {
      return floats_of(saved->worker).subspan(static_cast<std::size_t>(r) * n, n);
    });
    to_first(std::as_bytes(mean->server_error()), [&](int r) {
      const Partition& partition = mean->partition();
      return floats_of(saved->server)
          .subspan(static_cast<std::size_t>(partition.begin(r)),
                   static_cast<std::size_t>(partition.size(r)));
    });
    if (first) ++saved;
  }
}

std::vector<NamedArray> DataParallel::state() {
  std::vector<NamedArray> planes;
  for (const SavedErrors& errors : saved_) {
    const auto add = [&](const char* name, const Buffer& sums) {
      planes.push_back(
          {errors.name + name, Dtype::kF32, {std::ssize(floats_of(sums))}, sums.bytes()});
    };
    add("worker_error", errors.worker);
    add("server_error", errors.server);
  }
  for (const MomentumExchange* one : momenta_) {
    if (one->momentum().empty()) continue;
    planes.push_back({one->parameter().name() + "/dp/momentum",
                      Dtype::kF32,
                      {std::ssize(one->momentum())},
                      std::as_writable_bytes(one->momentum())});
  }
  if (!momenta_.empty() && saved_warmup_.size() > 0) {
    planes.push_back(
        {"dp/warmup", Dtype::kF64, {std::ssize(saved_warmup_.bytes()) / 8}, saved_warmup_.bytes()});
  }
  return planes;
}

void DataParallel::restore(int ranks) {
  const int here = ranks_->rank();
  for (const SavedErrors& errors : saved_) {
    const std::span<float> own = errors.mean->worker_error();
    const std::span<const float> all = floats_of(errors.worker);
    if (ranks == ranks_->size()) {
      const auto begin = all.begin() + here * std::ssize(own);
      std::copy(begin, begin + std::ssize(own), own.begin());
    } else {
      for (std::size_t i = 0; i < own.size(); ++i) {
        double sum = 0.0;
        for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
          sum += double{all[r * own.size() + i]};
        }
        own[i] = static_cast<float>(sum / ranks);
      }
    }
    const std::span<float> server = errors.mean->server_error();
    std::copy_n(floats_of(errors.server).begin() + errors.mean->partition().begin(here),
                server.size(), server.begin());
  }
  const Warmup warmup = *saved_warmup_.as<Warmup>();
  forget_state();
  const auto steps_done = static_cast<double>(optimizer_->steps_done());
  check(warmup.steps >= 0.0 && warmup.steps <= steps_done && warmup.updates >= 0.0 &&
            warmup.updates <= warmup.steps && (warmup.updates > 0.0) == (warmup.steps > 0.0),
        "data parallel: a warm-up of ", warmup.updates, " updates in ", warmup.steps, " of ",
        steps_done, " steps; the state is damaged");
  variance_before_ = warmup.variance_before;
  if (warmup.steps > 0.0) {
    freeze(static_cast<std::int64_t>(warmup.steps), static_cast<std::int64_t>(warmup.updates));
  }
}

}  // namespace tritgrad
