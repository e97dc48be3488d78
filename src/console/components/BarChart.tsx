export interface Bar {
  /** What stands below the bar, such as a day. */
  readonly label: string
  /** Length of the bar, from 0 to 1. */
  readonly share: number
  /** The value as text, exact. */
  readonly value: string
  readonly href?: string
}

interface Props {
  readonly title: string
  readonly bars: ReadonlyArray<Bar>
}

const height = 120
const width = 16
const gap = 4

/** Bars with their values in a list for those who do not see them. */
export const BarChart = ({ bars, title }: Props) => (
  <figure class="chart">
    <figcaption>{title}</figcaption>
    <svg
      viewBox={`0 0 ${bars.length * (width + gap)} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      {bars.map(({ label, share, value }, index) => (
        <g key={label}>
          <title>{`${label}: ${value}`}</title>
          <rect class="bar-room" x={index * (width + gap)} y={0} width={width} height={height} />
          <rect
            class="bar"
            x={index * (width + gap)}
            y={height - barHeight(share)}
            width={width}
            height={barHeight(share)}
          />
        </g>
      ))}
    </svg>
    <ul class="hidden">
      {bars.map(({ href, label, value }) => (
        <li key={label}>
          {href === undefined ? `${label}: ${value}` : <a href={href}>{`${label}: ${value}`}</a>}
        </li>
      ))}
    </ul>
    <p class="chart-ends faint" aria-hidden="true">
      <span>{bars.at(0)?.label}</span>
      <span>{bars.at(-1)?.label}</span>
    </p>
  </figure>
)

/** What is not zero is seen. */
const barHeight = (share: number): number => (share === 0 ? 0 : Math.max(2, share * height))
