# SPDX-License-Identifier: Apache-2.0
"""The demo's page: one HTML file with tables and plots as inline SVG, light and dark, that needs no network and no script.
It is well-formed XML, too. Nothing is measured here."""

from html import escape

import plots
import table
import wording

STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1c2128; --soft: #57606a; --line: #d5dae0; --card: #f6f8fa;
  --bare: #b45309; --pair: #0969a8; --good: #1a7f37; --bad: #cf222e; }
@media (prefers-color-scheme: dark) {
  :root { --page: #12161c; --ink: #e6e9ee; --soft: #9aa4b0; --line: #343c47; --card: #1a2029;
    --bare: #e8a13c; --pair: #58b0f0; --good: #4cc26a; --bad: #ff7b72; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.1rem; margin: 0 0 .2rem; }
p { margin: .2rem 0 .8rem; max-width: 46rem; }
.soft { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; }
th[colspan] { text-align: center; }
th:first-child, td:first-child { text-align: left; }
td.bars { min-width: 6rem; width: 16%; }
td svg { display: block; width: 100%; height: 18px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 1rem; margin: 1rem 0; }
section .verdict { font-weight: 600; }
.good { color: var(--good); } .bad { color: var(--bad); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1rem; }
.plots svg { display: block; width: 100%; height: auto; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin: 0 .35em 0 .8em; }
svg text { fill: var(--soft); font: 11px system-ui, "Segoe UI", Roboto, sans-serif; }
svg text.title { fill: var(--ink); font-weight: 600; }
svg .bare { stroke: var(--bare); } svg .pair { stroke: var(--pair); }
svg rect.bare, svg circle.bare, .key.bare { fill: var(--bare); background: var(--bare); stroke: none; }
svg rect.pair, svg circle.pair, .key.pair { fill: var(--pair); background: var(--pair); stroke: none; }
svg path { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .limit { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 5 4; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; font-size: .92rem; }
dt { color: var(--soft); } dd { margin: 0; }
@media print { section { break-inside: avoid; } }
"""

KEY = '<span class="key bare"></span>bare line <span class="key pair"></span>with the pair'


def page(results):
    title = f"Longhaul demo: {results['line']}"
    sections = "\n".join(_section(row, results) for row in results["rows"])
    facts = "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in table.conditions(results))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>The same work over the same line, without and with Longhaul</h1>
<p class="soft">Line: {escape(results['line'])}. Each step ran on both lanes at the same time, each over an emulated line of
its own. {escape(results['began'])}, {results['seconds']:.0f} s in total.</p>
<p>{KEY}</p>
<div class="scroll"><table>
<thead><tr><th>step</th><th colspan="3">seconds: bare, pair</th><th>times as fast</th><th colspan="2">WAN MB: bare, pair</th>
<th>bytes</th></tr></thead>
<tbody>
{chr(10).join(_table_row(row) for row in results['rows'])}
</tbody>
</table></div>
{sections}
<section>
<h2>How it was measured</h2>
<dl>
{facts}
</dl>
</section>
</main>
</body>
</html>
"""


def _table_row(row):
    short, bare, pair, times, wan_bare, wan_pair, equal = map(escape, table.cells_of(row))
    return (f"<tr><td>{short}</td><td>{bare}</td><td>{pair}</td><td class=\"bars\">{plots.time_bars(row)}</td>"
            f"<td>{times}</td><td>{wan_bare}</td><td>{wan_pair}</td><td class=\"{'good' if equal == 'equal' else 'bad'}\">{equal}</td></tr>")


def _section(row, results):
    parts = _parts(row)
    return f"""<section>
<h2>{escape(row['title'])}</h2>
<p class="verdict {wording.mood(row) or ''}">{escape(wording.verdict(row))}</p>
<p>{escape(row['why'])}{parts}</p>
<div class="plots">
{plots.delivered(row)}
{plots.line_rate(row, results['rate'])}
</div>
</section>"""


def _parts(row):
    """What a step consisted of, where its workload timed that."""
    names = [name for name in row["bare"]["parts"] if name in row["pair"]["parts"]]
    if not names:
        return ""
    texts = (f"{name} {wording.seconds_text(row['bare']['parts'][name])} s bare, "
             f"{wording.seconds_text(row['pair']['parts'][name])} s with the pair" for name in names)
    return escape(f" In parts: {'; '.join(texts)}.")
