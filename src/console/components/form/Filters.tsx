import { useEffect, useId, useState } from "preact/hooks"
import { isoOfLocalInput, localInputOf } from "../../format/time.ts"
import { location, setQuery } from "../../router/location.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { Icon } from "../Icon.tsx"
import { Field } from "./Field.tsx"
import { Segments } from "./Segments.tsx"

/** A query parameter of the page. */
export interface Filter {
  readonly name: string
  readonly label: string
  /** `segments` (a few choices) and `search` (a text) are always visible. */
  readonly kind: "text" | "time" | "day" | "amount" | "choice" | "segments" | "search"
  /** For segments: the label for no value. */
  readonly all?: string
  /** For a choice: values with their labels. */
  readonly options?: ReadonlyArray<readonly [value: string, label: string]>
}

/** The values in the address, in the API's form. Parameters that are not set are absent. */
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

/** The value in the address, if it is one of these; otherwise it is absent. */
export const choiceIn = <const Name extends string, const Value extends string>(
  name: Name,
  values: ReadonlyArray<Value>
): { readonly [name in Name]?: Value } => {
  const value = values.find((it) => it === location.value.query.get(name))
  const found: { [name in Name]?: Value } = {}
  if (value !== undefined) found[name] = value
  return found
}

/** The filters of a list. They are in the address, so that a search can be shared as a link. */
export const Filters = ({ filters }: { readonly filters: ReadonlyArray<Filter> }) => {
  const { query } = location.value
  const id = useId()
  const seen = filters.filter(({ kind }) => kind === "segments")
  const searches = filters.filter(({ kind }) => kind === "search")
  const others = filters.filter(({ kind }) => kind !== "segments" && kind !== "search")
  const count = others.filter(({ name }) => query.has(name)).length
  const [isOpen, setOpen] = useState(count > 0)
  const isSet = filters.some(({ name }) => query.has(name))
  return (
    <div class="filters">
      <div class="filter-bar">
        {seen.map(({ all = filterTexts.all, label, name, options = [] }) => (
          <Segments
            key={name}
            label={label}
            value={query.get(name) ?? ""}
            options={[["", all], ...options]}
            onValue={(value) => setQuery({ [name]: value })}
          />
        ))}
        {searches.map((filter) => (
          <span key={filter.name} class="search">
            <Icon name="search" />
            <TypedText filter={filter} value={query.get(filter.name) ?? ""} />
          </span>
        ))}
        {others.length > 0 && (
          <button
            type="button"
            aria-expanded={isOpen}
            aria-controls={id}
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name="filter" />
            {count === 0 ? filterTexts.legend : filterTexts.set(count)}
          </button>
        )}
        {isSet && (
          <button
            type="button"
            class="quiet"
            onClick={() => setQuery(Object.fromEntries(filters.map(({ name }) => [name, ""])))}
          >
            {filterTexts.clear}
          </button>
        )}
      </div>
      <div id={id} class="filter-fields" hidden={!isOpen}>
        {isOpen &&
          others.map((filter) => (
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
      </div>
    </div>
  )
}

interface ControlProps {
  readonly filter: Filter
  readonly value: string
  readonly attributes: { readonly id: string }
}

const Control = (props: ControlProps) => {
  const { attributes, filter, value } = props
  const { kind, name } = filter
  if (kind === "choice") return <Choice {...props} />
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
  return <TypedText {...props} />
}

/** A value from the address stays visible even if it is not among the options. */
const Choice = ({ attributes, filter: { name, options = [] }, value }: ControlProps) => {
  const isKnown = value === "" || options.some(([option]) => option === value)
  const all = isKnown ? options : [...options, [value, value] as const]
  return (
    <select
      {...attributes}
      value={value}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value })}
    >
      <option value="">{filterTexts.any}</option>
      {all.map(([option, label]) => (
        <option key={option} value={option}>
          {label}
        </option>
      ))}
    </select>
  )
}

/** Requests wait for a pause in typing. */
const pauseMillis = 400

/** Without attributes the control stands alone and shows its label as the placeholder. */
type TextProps = Omit<ControlProps, "attributes"> & Partial<Pick<ControlProps, "attributes">>

/** Applies while the user types. */
const TypedText = ({ attributes, filter: { kind, label, name }, value }: TextProps) => {
  const [text, setText] = useState(value)
  useEffect(() => {
    if (text.trim() !== value) setText(value)
  }, [value])
  useEffect(() => {
    if (text.trim() === value) return undefined
    const timer = setTimeout(() => setQuery({ [name]: text.trim() }), pauseMillis)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <input
      {...(attributes ?? { "aria-label": label, placeholder: label })}
      type="search"
      autocomplete="off"
      inputMode={kind === "amount" ? "decimal" : undefined}
      value={text}
      onInput={({ currentTarget }) => setText(currentTarget.value)}
      onKeyDown={({ key }) => {
        if (key === "Enter") setQuery({ [name]: text.trim() })
      }}
    />
  )
}
