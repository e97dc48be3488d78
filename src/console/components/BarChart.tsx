import { hrefOf, navigate } from "../router/location.ts"
import type { Query } from "../router/location.ts"

export interface Bar {
  /** What stands below the bar, such as a day. */
  readonly label: string
  /** Length of the bar, from 0 to 1. */
  readonly share: number
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

const height = 120
const width = 16
const gap = 4
/** What a finger hits (WCAG 2.2, target size). */
const linkWidth = 24

/** Bars with their values. Those that lead somewhere are links; the others stand in a list for those who do not see them. */
export const BarChart = ({ bars, title }: Props) => {
  const areLinks = bars.some(({ to }) => to !== undefined)
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div class={areLinks ? "chart-scroll" : undefined}>
        <svg
          viewBox={`0 0 ${bars.length * (width + gap)} ${height}`}
          preserveAspectRatio="none"
          {...(areLinks
            ? { class: "linked", width: bars.length * linkWidth }
            : { "aria-hidden": true, focusable: "false" })}
        >
          {bars.map((bar, index) => (
            <OneBar key={bar.label} bar={bar} x={index * (width + gap)} />
          ))}
        </svg>
      </div>
      {!areLinks && (
        <ul class="hidden">
          {bars.map(({ label, value }) => (
            <li key={label}>{`${label}: ${value}`}</li>
          ))}
        </ul>
      )}
      <p class="chart-ends faint" aria-hidden="true">
        <span>{bars.at(0)?.label}</span>
        <span>{bars.at(-1)?.label}</span>
      </p>
    </figure>
  )
}

const OneBar = ({ bar: { isCurrent, label, share, to, value }, x }: BarProps) => {
  const name = `${label}: ${value}`
  const shapes = (
    <>
      <title>{name}</title>
      <rect class="bar-room" x={x} y={0} width={width} height={height} />
      <rect
        class={isCurrent === true ? "bar current" : "bar"}
        x={x}
        y={height - barHeight(share)}
        width={width}
        height={barHeight(share)}
      />
    </>
  )
  if (to === undefined) return <g>{shapes}</g>
  const href = hrefOf(to.path, to.query)
  return (
    <a
      href={href}
      aria-label={name}
      aria-current={isCurrent === true ? "true" : undefined}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
        event.preventDefault()
        navigate(href)
      }}
    >
      {shapes}
    </a>
  )
}

interface BarProps {
  readonly bar: Bar
  readonly x: number
}

/** What is not zero is seen. */
const barHeight = (share: number): number => (share === 0 ? 0 : Math.max(2, share * height))
