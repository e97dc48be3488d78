import { useState } from "preact/hooks"
import { showAxis, topOf } from "../format/scale.ts"
import { hrefOf, navigate } from "../router/location.ts"
import type { Query } from "../router/location.ts"

export interface Bar {
  /** What the bar stands for, such as a day. */
  readonly label: string
  /** Its length, for the eye. */
  readonly length: number
  /** The value as text, exact. */
  readonly value: string
  /** What the bar leads to, below `/console`. */
  readonly to?: { readonly path: string; readonly query: Query }
  readonly isCurrent?: boolean
}

interface Props {
  readonly title: string
  readonly bars: ReadonlyArray<Bar>
}

/** So many labels have room below the bars of a phone. */
const labelsAtMost = 4

/**
 * Bars over an axis. A pointer shows the value of one, and so do the arrow keys: the chart is one control, a
 * slider over its bars, because thirty links are thirty stops.
 */
export const BarChart = ({ bars, title }: Props) => {
  const [pointed, setPointed] = useState<number | undefined>(undefined)
  const top = topOf(Math.max(...bars.map(({ length }) => length)))
  const last = bars.length - 1
  const current = bars.findIndex(({ isCurrent }) => isCurrent === true)
  const at = Math.min(pointed ?? (current < 0 ? last : current), last)
  const shown = bars[at]
  const isLinked = shown?.to !== undefined
  const open = (index: number) => {
    const to = bars[index]?.to
    if (to !== undefined) navigate(hrefOf(to.path, to.query))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const next = {
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      Home: 0,
      End: last
    }[event.key]
    if (event.key === "Enter") open(at)
    else if (next === undefined) return
    else setPointed(Math.max(0, Math.min(last, next)))
    event.preventDefault()
  }
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div
        class={isLinked ? "plot linked" : "plot"}
        role="slider"
        tabIndex={0}
        aria-label={title}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={at}
        aria-valuetext={shown === undefined ? "" : `${shown.label}: ${shown.value}`}
        onKeyDown={onKeyDown}
        onBlur={() => setPointed(undefined)}
        onPointerLeave={() => setPointed(undefined)}
      >
        {[top, top / 2].map((value) => (
          <div key={value} class="gridline" style={{ bottom: `${(value / top) * 100}%` }}>
            <span>{showAxis(value)}</span>
          </div>
        ))}
        {bars.map(({ isCurrent, label, length, value }, index) => (
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions -- the slider has the keys
          <div
            key={label}
            class={slotClass(index === pointed, isCurrent === true)}
            onPointerEnter={() => setPointed(index)}
            onClick={() => open(index)}
          >
            {length > 0 && (
              <div class="bar" style={{ height: `max(2px, ${(length / top) * 100}%)` }} />
            )}
            {index === pointed && (
              <div class={tipClass(index, last)}>
                {label}: <strong>{value}</strong>
              </div>
            )}
          </div>
        ))}
      </div>
      <p class="axis" aria-hidden="true">
        {axisOf(bars).map((label) => (
          <span key={label}>{label}</span>
        ))}
      </p>
    </figure>
  )
}

const slotClass = (isPointed: boolean, isCurrent: boolean): string =>
  ["slot", isPointed ? "pointed" : "", isCurrent ? "current" : ""].filter(Boolean).join(" ")

/** The tip of an outer bar stays on the page. */
const tipClass = (index: number, last: number): string => {
  if (index < last / 3) return "tip from-start"
  return index > (last * 2) / 3 ? "tip from-end" : "tip"
}

/** Labels at equal distances, the first and the last among them. */
const axisOf = (bars: ReadonlyArray<Bar>): ReadonlyArray<string> => {
  const count = Math.min(labelsAtMost, bars.length)
  return Array.from({ length: count }, (_, n) => {
    const index = count === 1 ? 0 : Math.round((n * (bars.length - 1)) / (count - 1))
    return bars[index]?.label ?? ""
  })
}
