interface Props {
  readonly label: string
  readonly value: string
  /** Values with what they are called. */
  readonly options: ReadonlyArray<readonly [value: string, label: string]>
  readonly onValue: (value: string) => void
}

/** One of a few, all in sight. */
export const Segments = ({ label, onValue, options, value }: Props) => (
  <div class="segments" role="group" aria-label={label} data-stays>
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
)
