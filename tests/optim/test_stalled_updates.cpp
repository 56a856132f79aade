// The smallest update that chance carries, as stalled_updates.h counts it, against what updates do.
// (What a run says of stalled updates is tests/models/training/test_training_warnings.cpp.)
#include "optim/stalled_updates.h"
#include "tests/support/single.h"
#include "tests/support/support_formats.h"

namespace tritgrad::test::test_stalled_updates {
namespace {

// Whether an update by `amount` moves any of 9 zeros, with the largest or the smallest of all
// noise.
bool chance_moves(const FormatSpec& spec, float amount) {
  for (std::uint32_t noise : {0x0000u, 0xFFFFu}) {
    for (float sign : {-1.0f, 1.0f}) {
      Storage storage(spec, {1, 9}, Category::kWeights);
      encode_all(storage, std::vector<float>(9));
      Descent descent{amount, {}};
      descent.noise.fill(as_fraction(static_cast<std::uint16_t>(noise)));
      const std::vector<float> direction(9, sign);
      descend_block(storage, {0, 0, 9}, {direction.data()}, descent);
      for (double master : decoded(storage, true)) {
        if (master != 0.0) return true;
      }
    }
  }
  return false;
}

// Returns the share that counts as moved of a watched step with updates of `amount`.
double moved(const FormatSpec& spec, float amount) {
  GroupSpec group;
  group.rule.kind = RuleKind::kSgd;
  group.lr = amount;
  Single single({1, 9}, spec, group, 1);
  single.step(std::vector<float>(9, 1.0f));
  return single.optimizer->movements().at(0).moved;
}

}  // namespace

TEST_CASE("stalled updates: chance carries 2^-17 of a level, and nothing smaller") {
  using enum FormatKind;
  int formats = 0;
  for (FormatKind kind : formats_for(kWeight)) {
    const FormatSpec spec = format(kind);
    if (!spec.traits().holds_trits) continue;
    ++formats;
    CAPTURE(std::string(format_name(kind)));
    const int levels =
        kind == kTernary ? spec.flips.levels_per_trit() : spec.traits().levels_per_trit;
    REQUIRE(levels > 0);
    const float smallest = 0x1p-17f / static_cast<float>(levels);
    CHECK_FALSE(chance_moves(spec, 0.99f * smallest));
    CHECK(chance_moves(spec, 1.01f * smallest));
    CHECK(moved(spec, 0.99f * smallest) == 0.0);
    CHECK(moved(spec, 1.01f * smallest) == 1.0);
  }
  CHECK(formats == 9);
}

}  // namespace tritgrad::test::test_stalled_updates
