import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { hrefOf, navigate } from "../../router/location.ts"
import type { Query } from "../../router/location.ts"

/** A place on the axis of a chart. */
export interface Place {
  /** Its label, such as a day. */
  readonly label: string
  /** The exact value, as text. */
  readonly value: string
  /** The parts of the value. */
  readonly parts?: ReadonlyArray<Part>
  /** The link target, below `/console`. */
  readonly to?: { readonly path: string; readonly query: Query }
  readonly isCurrent?: boolean
}

export interface Part {
  readonly name: string
  readonly value: string
  /** The length; the exact value is shown as text. */
  readonly length: number
  /** The color of the series, from 1; 0 stands for the rest. */
  readonly tone: number
}

interface Props {
  readonly title: string
  readonly places: ReadonlyArray<Place>
  /** The values at the top and bottom of the axis, and how its labels are formatted. */
  readonly top: number
  readonly bottom?: number
  readonly showValue: (value: number) => string
  /** What is drawn at each place. */
  readonly marks?: ReadonlyArray<ComponentChildren>
  /** What is drawn across all places. */
  readonly children?: ComponentChildren
  /** The names of the colors. */
  readonly legend?: ReadonlyArray<Pick<Part, "name" | "tone">>
  /** As high as a table row: without title, axis and grid. */
  readonly isSmall?: boolean
}

/** This many labels fit on a phone. */
const labelsAtMost = 4

/**
 * A chart over an axis. The pointer and the arrow keys show the values of one place. The chart is a single control, a
 * slider over its places, because thirty links would be thirty tab stops.
 */
export const Plot = ({
  bottom = 0,
  children,
  isSmall = false,
  legend = [],
  marks = [],
  places,
  showValue,
  title,
  top
}: Props) => {
  const [pointed, setPointed] = useState<number | undefined>(undefined)
  const last = places.length - 1
  const current = places.findIndex(({ isCurrent }) => isCurrent === true)
  const at = Math.min(pointed ?? (current < 0 ? last : current), last)
  const shown = places[at]
  const open = (index: number) => {
    const to = places[index]?.to
    if (to !== undefined) navigate(hrefOf(to.path, to.query))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const next = nextOf(event.key, at, last)
    if (event.key === "Enter") open(at)
    else if (next === undefined) return
    else setPointed(Math.max(0, Math.min(last, next)))
    event.preventDefault()
  }
  return (
    <figure class={isSmall ? "chart spark" : "chart"}>
      {!isSmall && <figcaption>{title}</figcaption>}
      {legend.length > 1 && <Legend names={legend} />}
      <div
        class={shown?.to === undefined ? "plot" : "plot linked"}
        role="slider"
        tabIndex={0}
        aria-label={title}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={at}
        aria-valuetext={shown === undefined ? "" : textOf(shown)}
        onKeyDown={onKeyDown}
        onBlur={() => setPointed(undefined)}
        onPointerLeave={() => setPointed(undefined)}
      >
        {!isSmall && <Grid bottom={bottom} top={top} showValue={showValue} />}
        {places.map((place, index) => (
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions -- the slider has the keys
          <div
            key={place.label}
            class={slotClass(index === pointed, place.isCurrent === true)}
            onPointerEnter={() => setPointed(index)}
            onClick={() => open(index)}
          >
            {marks[index]}
            {index === pointed && <Tip place={place} class={tipClass(index, last)} />}
          </div>
        ))}
        {children}
      </div>
      {!isSmall && (
        <p class="axis" aria-hidden="true">
          {axisOf(places).map((label) => (
            <span key={label}>{label}</span>
          ))}
        </p>
      )}
    </figure>
  )
}

type GridProps = Pick<Props, "showValue" | "top"> & { readonly bottom: number }

/** Labels that are closer than this share of the axis would overlap. */
const labelShare = 0.12

/** The values with grid lines: the top and the middle or, if the axis goes below zero, the top, zero and the bottom. */
const valuesOf = ({ bottom, top }: Pick<GridProps, "bottom" | "top">): ReadonlyArray<number> => {
  if (bottom === 0) return [top, top / 2]
  return -bottom / (top - bottom) < labelShare ? [top, 0] : [top, 0, bottom]
}

const Grid = ({ bottom, showValue, top }: GridProps) => (
  <>
    {valuesOf({ bottom, top }).map((value) => (
      <div
        key={value}
        class="gridline"
        style={{ bottom: `${((value - bottom) / (top - bottom)) * 100}%` }}
      >
        <span>{showValue(value)}</span>
      </div>
    ))}
  </>
)

const nextOf = (key: string, at: number, last: number): number | undefined =>
  ({
    ArrowLeft: at - 1,
    ArrowDown: at - 1,
    ArrowRight: at + 1,
    ArrowUp: at + 1,
    Home: 0,
    End: last
  })[key]

/** Parts are named only if there are several. */
const severalOf = ({ parts = [] }: Place): ReadonlyArray<Part> => (parts.length > 1 ? parts : [])

const textOf = (place: Place): string =>
  [
    `${place.label}: ${place.value}`,
    ...severalOf(place).map(({ name, value }) => `${name} ${value}`)
  ].join("; ")

const Tip = ({ class: name, place }: { readonly place: Place; readonly class: string }) => (
  <div class={name}>
    {place.label}: <strong>{place.value}</strong>
    {severalOf(place).map((part) => (
      <span key={part.name} class="tip-part">
        <i data-tone={part.tone} /> {part.name} <strong>{part.value}</strong>
      </span>
    ))}
  </div>
)

const Legend = ({ names }: { readonly names: NonNullable<Props["legend"]> }) => (
  <ul class="legend" aria-hidden="true">
    {names.map(({ name, tone }) => (
      <li key={name}>
        <i data-tone={tone} /> {name}
      </li>
    ))}
  </ul>
)

const slotClass = (isPointed: boolean, isCurrent: boolean): string =>
  ["slot", isPointed ? "pointed" : "", isCurrent ? "current" : ""].filter(Boolean).join(" ")

/** Keeps the tooltip of the first and last places on the page. */
const tipClass = (index: number, last: number): string => {
  if (index < last / 3) return "tip from-start"
  return index > (last * 2) / 3 ? "tip from-end" : "tip"
}

/** Labels at equal distances, including the first and the last place. */
const axisOf = (places: ReadonlyArray<Place>): ReadonlyArray<string> => {
  const count = Math.min(labelsAtMost, places.length)
  return Array.from({ length: count }, (_, n) => {
    const index = count === 1 ? 0 : Math.round((n * (places.length - 1)) / (count - 1))
    return places[index]?.label ?? ""
  })
}
