import { showAxis, topOf } from "../../format/scale.ts"
import { Plot } from "./Plot.tsx"
import type { Part, Place } from "./Plot.tsx"

export interface Bar extends Place {
  /** The length of the bar; the exact value is shown as text. */
  readonly length: number
}

interface Props {
  readonly title: string
  readonly bars: ReadonlyArray<Bar>
  readonly legend?: ReadonlyArray<Pick<Part, "name" | "tone">>
}

/** Bars, each of one color or stacked from several parts. */
export const BarChart = ({ bars, legend, title }: Props) => {
  const top = topOf(Math.max(...bars.map(({ length }) => length)))
  return (
    <Plot
      title={title}
      places={bars}
      top={top}
      showValue={showAxis}
      {...(legend === undefined ? {} : { legend })}
      marks={bars.map(({ label, length, parts = [] }) =>
        length > 0 ? (
          <div key={label} class="bar" style={{ height: `max(2px, ${(length / top) * 100}%)` }}>
            {parts.map((part) => (
              <div key={part.name} data-tone={part.tone} style={{ flexGrow: part.length }} />
            ))}
          </div>
        ) : null
      )}
    />
  )
}
