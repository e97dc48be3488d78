import type { Result } from "./run.ts"

const table = (head: string, rows: Iterable<readonly [string, string | number]>) =>
  [
    `| ${head} | |`,
    "|---|---|",
    ...[...rows].map(([name, value]) => `| ${name} | ${value} |`)
  ].join("\n")

/** The report of a run, in Markdown. */
export const reportOf = (result: Result, commit: string): string => {
  const {
    began,
    breaches,
    checks,
    done,
    figures,
    missing,
    options,
    statuses,
    takeovers,
    taskErrors
  } = result
  const times = takeovers.map(({ seconds }) => seconds).sort((a, b) => a - b)
  const alone = takeovers.filter(({ beside }) => beside <= 0).map(({ seconds }) => seconds)
  const most = (all: ReadonlyArray<number>) =>
    all.length === 0 ? "-" : `${Math.max(...all).toFixed(1)} s`
  const median = times[Math.floor(times.length / 2)]
  const counts = Map.groupBy(done, ({ fault }) => fault)
  return `# Chaos, seed ${options.seed}, ${began.toISOString()}

Commit ${commit}. ${breaches.length === 0 ? "No invariant was broken." : `**${breaches.length} invariants were broken.**`} All were checked ${checks} times.

${table("Figure", Object.entries(figures))}

## Broken invariants

${
  breaches.length === 0
    ? "None."
    : breaches
        .map(
          ({ atSeconds, count, examples, invariant }) =>
            `- **${invariant}**: ${count}, first seen after ${atSeconds} s\n${examples.map((it) => `  - \`${it}\``).join("\n")}`
        )
        .join("\n")
}

## Takeovers

${takeovers.length} times a process died with something in hand: median ${median === undefined ? "-" : `${median.toFixed(1)} s`}, longest ${most(times)}; without another fault beside it longest ${most(alone)}.

## Faults

${table(
  "Fault",
  [...counts].map(([name, all]) => [name, all.length] as const)
)}
${missing.length === 0 ? "" : `\nLeft out: ${missing.join("; ")}.\n`}
## Ends of tasks, by adapter and code

${table("End", taskErrors)}

## Requests, by kind and status

${table(
  "Request",
  [...statuses].sort(([a], [b]) => a.localeCompare(b))
)}

## In order

${done.map(({ atSeconds, fault, what }) => `- ${atSeconds} s: ${fault}: ${what}`).join("\n")}
`
}
