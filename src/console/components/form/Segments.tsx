import { useEffect, useRef } from "preact/hooks"

interface Props {
  readonly label: string
  /** The label is shown, because the choices do not say what they are about. */
  readonly isNamed?: boolean
  readonly value: string
  /** Values with what they are called. */
  readonly options: ReadonlyArray<readonly [value: string, label: string]>
  readonly onValue: (value: string) => void
}

/** One of a few, all in sight; on a phone in one row that scrolls, with the chosen one in view. */
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
