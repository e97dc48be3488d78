import { isoOfLocalInput, localInputOf } from "../format/time.ts"
import { location, setQuery } from "../router/location.ts"
import { texts } from "../texts/en.ts"
import { Field } from "./Field.tsx"

/** One parameter of the address. */
export interface Filter {
  readonly name: string
  readonly label: string
  readonly kind: "text" | "time" | "day" | "amount" | "choice"
  /** Of a choice: values with what they are called. */
  readonly options?: ReadonlyArray<readonly [value: string, label: string]>
}

/** The values in the address, as the API takes them; what is not set is absent. */
export const filterValues = <const Name extends string>(
  names: ReadonlyArray<Name>
): { readonly [name in Name]?: string } => {
  const { query } = location.value
  const found: { [name in Name]?: string } = {}
  for (const name of names) {
    const value = query.get(name)
    if (value !== null && value !== "") found[name] = value
  }
  return found
}

/** The filters of a list. They stand in the address, so that a search is a link. */
export const Filters = ({ filters }: { readonly filters: ReadonlyArray<Filter> }) => {
  const { query } = location.value
  const isSet = filters.some(({ name }) => query.has(name))
  return (
    <details class="filters" open={isSet}>
      <summary>{texts.filters.legend}</summary>
      <div class="filter-fields">
        {filters.map((filter) => (
          <Field key={filter.name} label={filter.label}>
            {(attributes) => (
              <Control
                filter={filter}
                value={query.get(filter.name) ?? ""}
                attributes={attributes}
              />
            )}
          </Field>
        ))}
        {isSet && (
          <button
            type="button"
            onClick={() => setQuery(Object.fromEntries(filters.map(({ name }) => [name, ""])))}
          >
            {texts.filters.clear}
          </button>
        )}
      </div>
    </details>
  )
}

interface ControlProps {
  readonly filter: Filter
  readonly value: string
  readonly attributes: { readonly id: string }
}

const Control = ({ attributes, filter: { kind, name, options = [] }, value }: ControlProps) => {
  if (kind === "choice") {
    return (
      <select
        {...attributes}
        value={value}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value })}
      >
        <option value="">{texts.filters.any}</option>
        {options.map(([option, label]) => (
          <option key={option} value={option}>
            {label}
          </option>
        ))}
      </select>
    )
  }
  if (kind === "day") {
    return (
      <input
        {...attributes}
        type="date"
        value={value}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value })}
      />
    )
  }
  if (kind === "time") {
    return (
      <input
        {...attributes}
        type="datetime-local"
        value={localInputOf(value)}
        onChange={(event) => setQuery({ [name]: isoOfLocalInput(event.currentTarget.value) ?? "" })}
      />
    )
  }
  return (
    <input
      {...attributes}
      type="text"
      inputMode={kind === "amount" ? "decimal" : undefined}
      value={value}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim() })}
    />
  )
}
