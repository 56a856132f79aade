#include "tools/report/report_style.h"

namespace tritgrad {

std::string report_style() {
  return R"(<style>
:root{--ink:#1b1f24;--soft:#59636e;--line:#d5dae0;--paper:#fff;--raised:#f5f7f9;--accent:#0072b2}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:76rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .75rem;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2.5rem 0 .75rem}
.headline{font-size:1.2rem;line-height:1.5;margin:0 0 1.25rem;max-width:56rem;border-left:4px solid var(--accent);padding-left:1rem;overflow-wrap:anywhere}
.facts{margin:0;color:var(--soft);font-size:.9rem}
.facts div{display:flex;gap:.75rem}
.facts dt{flex:0 0 4.5rem}
.facts dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.85rem;font-variant-numeric:tabular-nums;line-height:1.3}
th,td{padding:.4rem .55rem;text-align:right;white-space:nowrap;vertical-align:bottom}
thead th{color:var(--soft);font-weight:500;white-space:normal}
thead{border-bottom:1.5px solid var(--ink)}
tbody tr{border-bottom:1px solid var(--line)}
th:first-child{text-align:left}
thead tr:nth-child(2) th:first-child{text-align:right}
tbody th{position:sticky;left:0;background:var(--paper);font-weight:600}
thead .group{text-align:center;border-bottom:1px solid var(--line)}
.baseline th,.baseline td{background:var(--raised)}
.hash{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:.75rem}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,28rem),1fr));gap:2rem 2.5rem}
figure{margin:0;break-inside:avoid}
figcaption{color:var(--soft);font-size:.85rem;margin-top:.25rem}
pre{background:var(--raised);padding:.75rem 1rem;border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere;font:.85rem/1.5 ui-monospace,"DejaVu Sans Mono",monospace}
pre code{font:inherit}
.definitions{display:grid;grid-template-columns:minmax(7rem,max-content) 1fr;gap:.3rem 1.25rem;font-size:.9rem;max-width:56rem}
.definitions dt{font-weight:600}
.definitions dd{margin:0}
details{margin-top:2.5rem}
summary{cursor:pointer;font-size:1.15rem;font-weight:700}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa5b1;--line:#30363d;--paper:#0f1419;--raised:#1a2129;--accent:#4fa8e0}}
@media (max-width:34rem){.definitions{grid-template-columns:1fr;gap:0}.definitions dd{margin-bottom:.6rem}}
@media print{:root,body{font-size:10pt}main{max-width:none;padding:0}table{font-size:7pt}th,td{padding:.2rem .3rem}.scroll{overflow:visible}.figures{grid-template-columns:1fr 1fr;gap:1rem}.hash{font-size:5pt}details::details-content{content-visibility:visible;block-size:auto}tr{break-inside:avoid}h2{break-after:avoid}}
</style>
)";
}

}  // namespace tritgrad
