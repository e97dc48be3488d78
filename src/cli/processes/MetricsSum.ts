/** Gauges whose maximum is reported instead of the sum. */
const greatest = new Set([
  "gateway_account_circuit",
  "gateway_account_paused_seconds",
  "gateway_clock_skew_seconds",
  "gateway_overload_delay_seconds"
])
const least = new Set(["process_start_time_seconds"])

interface Family {
  readonly head: Array<string>
  type: string
  readonly samples: Map<string, number>
}

/**
 * Adds up the metrics of several processes, given as texts in Prometheus format. Counters and histograms of ended
 * processes must be included, because Prometheus treats a smaller sum as a restart of everything.
 */
export const sumMetrics = (texts: ReadonlyArray<string>): string => {
  const families = new Map<string, Family>()
  for (const text of texts) addText(families, text)
  return textOf(families)
}

/** Removes gauges, which are no longer valid once their process has ended. */
export const lasting = (text: string): string => {
  const families = new Map<string, Family>()
  addText(families, text)
  for (const [name, { type }] of families) if (type === "gauge") families.delete(name)
  return textOf(families)
}

const addText = (families: Map<string, Family>, text: string): void => {
  let name = ""
  for (const line of text.split("\n")) {
    if (line === "") continue
    if (line.startsWith("# ")) {
      name = line.split(" ")[2] ?? ""
      addHead(familyOf(families, name), line)
      continue
    }
    const end = line.lastIndexOf(" ")
    add(name, familyOf(families, name), line.slice(0, end), Number(line.slice(end + 1)))
  }
}

/** Keeps the first description, because another version may describe a metric differently. */
const addHead = (family: Family, line: string): void => {
  if (line.startsWith("# TYPE ")) {
    if (family.type !== "") return
    family.type = line.split(" ")[3] ?? ""
  } else if (family.head.length > 0) return
  family.head.push(line)
}

const familyOf = (families: Map<string, Family>, name: string): Family => {
  const known = families.get(name)
  if (known !== undefined) return known
  const made = { head: [], type: "", samples: new Map<string, number>() }
  families.set(name, made)
  return made
}

const add = (name: string, { samples }: Family, series: string, value: number): void => {
  const before = samples.get(series)
  if (before === undefined) samples.set(series, value)
  else if (greatest.has(name)) samples.set(series, Math.max(before, value))
  else if (least.has(name)) samples.set(series, Math.min(before, value))
  else samples.set(series, before + value)
}

const textOf = (families: Map<string, Family>): string => {
  const lines: Array<string> = []
  for (const { head, samples } of families.values()) {
    lines.push(...head)
    for (const [series, value] of samples) lines.push(`${series} ${value}`)
  }
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`
}
