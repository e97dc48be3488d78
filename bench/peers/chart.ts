/** Draws the peers' figures: one panel of bars for each table row that has values. */

export interface Bar {
  readonly name: string
  readonly value: number
  /** Shown next to the bar. */
  readonly text: string
}

const width = 760
const rowHeight = 22
const labelWidth = 150
const barWidth = 460

const panel = (title: string, bars: ReadonlyArray<Bar>, top: number) => {
  const most = Math.max(...bars.map(({ value }) => value))
  const rows = bars.map(({ name, text, value }, n) => {
    const y = top + 30 + n * rowHeight
    const length = Math.max(1, (value / most) * barWidth)
    const color = name === "gateway" ? "#2563eb" : "#94a3b8"
    return `<text x="${labelWidth - 8}" y="${y + 12}" text-anchor="end">${name}</text>
<rect x="${labelWidth}" y="${y}" width="${length.toFixed(1)}" height="16" rx="2" fill="${color}"/>
<text x="${(labelWidth + length + 6).toFixed(1)}" y="${y + 12}">${text}</text>`
  })
  return `<text x="8" y="${top + 20}" font-weight="bold">${title}</text>\n${rows.join("\n")}`
}

export const chart = (panels: ReadonlyMap<string, ReadonlyArray<Bar>>): string => {
  let height = 0
  const drawn = [...panels].map(([title, bars]) => {
    const text = panel(title, bars, height)
    height += 44 + bars.length * rowHeight
    return text
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13" fill="#0f172a">
<rect width="100%" height="100%" fill="#ffffff"/>
${drawn.join("\n")}
</svg>
`
}
