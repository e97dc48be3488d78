import { useEffect, useRef } from "preact/hooks"

interface Props {
  readonly label: string
  /** Shows the label, for choices that do not explain themselves. */
  readonly isNamed?: boolean
  readonly value: string
  /** Values with their labels. */
  readonly options: ReadonlyArray<readonly [value: string, label: string]>
  readonly onValue: (value: string) => void
}

/** A choice of a few values, all visible. On a phone they scroll in one row, with the chosen value in view. */
export const Segments = ({ isNamed = false, label, onValue, options, value }: Props) => {
  const row = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const chosen = row.current?.querySelector<HTMLElement>("[aria-pressed=true]")
    if (row.current === null || chosen == null) return
    const { clientWidth } = row.current
    row.current.scrollLeft = chosen.offsetLeft - (clientWidth - chosen.offsetWidth) / 2
  }, [value])
  return (
    <div class="segments-room">
      {isNamed && (
        <span class="segments-name" aria-hidden="true">
          {label}
        </span>
      )}
      <div ref={row} class="segments" role="group" aria-label={label} data-stays>
        {options.map(([option, name]) => (
          <button
            key={option}
            type="button"
            aria-pressed={option === value}
            onClick={() => onValue(option)}
          >
            {name}
          </button>
        ))}
      </div>
    </div>
  )
}
