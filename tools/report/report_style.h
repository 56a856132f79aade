// The style sheet of the HTML report.
#pragma once

#include <string>

namespace tritgrad {

std::string report_style();  // a <style> element

}  // namespace tritgrad
