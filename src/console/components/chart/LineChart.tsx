import { topOf } from "../../format/scale.ts"
import { Plot } from "./Plot.tsx"
import type { Place } from "./Plot.tsx"

export interface Line {
  readonly name: string
  readonly tone: number
  /** One value per place; `null` where there is none. */
  readonly values: ReadonlyArray<number | null>
}

interface Props {
  readonly title: string
  readonly places: ReadonlyArray<Place>
  readonly lines: ReadonlyArray<Line>
  readonly showValue: (value: number) => string
}

/** Lines over an axis, with a dot for each value. */
export const LineChart = ({ lines, places, showValue, title }: Props) => {
  const all = lines.flatMap(({ values }) => values.map((it) => it ?? 0))
  const top = topOf(Math.max(...all))
  const least = Math.min(...all)
  const bottom = least < 0 ? -topOf(-least) : 0
  const heightOf = (value: number) => (value - bottom) / (top - bottom)
  return (
    <Plot
      title={title}
      places={places}
      top={top}
      bottom={bottom}
      showValue={showValue}
      legend={lines}
    >
      <svg
        class="lines"
        viewBox={`0 0 ${places.length} 1`}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        {lines.map(({ name, tone, values }) => (
          <path key={name} data-tone={tone} d={pathOf(values, heightOf)} />
        ))}
      </svg>
    </Plot>
  )
}

/** A value without neighbors is a line of length zero, which round line caps render as a dot. */
const pathOf = (values: Line["values"], heightOf: (value: number) => number): string =>
  values
    .map((value, index) => {
      if (value === null) return ""
      const at = `${index + 0.5} ${1 - heightOf(value)}`
      return (values[index - 1] ?? null) === null ? `M${at}L${at}` : `L${at}`
    })
    .join("")
