// The commands of the tritgrad program. Each add_* declares its options and what runs.
#pragma once

namespace CLI {
class App;
}

namespace tritgrad {

void add_train_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_export_command(CLI::App& app);
void add_generate_command(CLI::App& app);
void add_compare_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_recipes_command(CLI::App& app);
void add_data_command(CLI::App& app);
void add_reproduce_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_traffic_command(CLI::App& app);

}  // namespace tritgrad
