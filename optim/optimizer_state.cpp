// What an optimizer tells of itself, and how it is restored.
#include "optim/optimizer.h"

namespace tritgrad {

std::vector<Movement> Optimizer::movements() const {
  std::vector<Movement> movements;
  for (const State& state : states_) {
    if (state.parameter->spec().role != Role::kWeight) continue;
    const bool rests = state.group.lr == 0.0;
    movements.push_back(rests ? Movement{state.parameter, 0.0, 0.0}
                              : state.watch.movement(*state.parameter));
  }
  return movements;
}

void Optimizer::resume_at(std::int64_t steps, std::int64_t skipped_updates) {
  check(steps >= 0 && steps <= total_steps_, "Optimizer: ", steps, " steps done is outside 0..",
        total_steps_, ", the steps of this run");
  check(skipped_updates >= 0 && skipped_updates <= steps, "Optimizer: ", skipped_updates,
        " skipped updates in ", steps, " steps; the state is damaged");
  for (const State& state : states_) {
    if (state.updates.size() == 0) continue;
    const std::int64_t updates = *state.updates.as<std::int64_t>();
    check(updates >= 0 && updates <= steps, "Optimizer: parameter '", state.parameter->name(),
          "' claims ", updates, " updates in ", steps, " steps; the state is damaged");
  }
  steps_done_ = steps;
  skipped_updates_ = skipped_updates;
}

std::vector<StatePlane> Optimizer::state() {
  std::vector<StatePlane> planes;
  for (State& state : states_) {
    const std::string prefix = state.parameter->name() + "/";
    for (std::size_t i = 0; i < state.moments.size(); ++i) {
      for (const Plane& plane : state.moments[i].planes()) {
        planes.push_back({prefix + state.moment_specs[i].name + "/" + plane.spec.name,
                          plane.spec.dtype, plane.bytes, plane.order});
      }
    }
    for (std::size_t i = 0; i < state.planes.size(); ++i) {
      const PlaneSpec& spec = state.plane_specs[i];
      planes.push_back({prefix + std::string(rule_name(state.group.rule.kind)) + "/" + spec.name,
                        spec.dtype, state.planes[i].bytes()});
    }
    if (state.updates.size() > 0) {
      planes.push_back({prefix + "updates", Dtype::kI64, state.updates.bytes()});
    }
  }
  return planes;
}

}  // namespace tritgrad
