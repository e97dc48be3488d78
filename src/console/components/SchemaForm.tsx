import type { ComponentChildren } from "preact"
import { texts } from "../texts/en.ts"
import { Field } from "./Field.tsx"
import { constraintsOf, descriptionOf, labelOf, plainSchema } from "./schema.ts"
import type { JsonSchema } from "./schema.ts"

export type Value = unknown

export interface SchemaFieldProps {
  readonly name: string
  /** JSON pointer of the value, as problems name it: `#/size`. */
  readonly pointer: string
  readonly schema: JsonSchema
  readonly value: Value
  readonly isRequired: boolean
  /** Faults of the request by pointer. */
  readonly errors: ReadonlyMap<string, string>
  /** `undefined`: the field is left out. */
  readonly onValue: (value: Value) => void
  /** A page may show some fields in its own way, such as media. `undefined`: as usual. */
  readonly custom?: ((props: SchemaFieldProps) => ComponentChildren | undefined) | undefined
}

interface FormProps {
  readonly schema: JsonSchema
  readonly value: Readonly<Record<string, Value>>
  readonly errors?: ReadonlyMap<string, string>
  readonly onValue: (value: Readonly<Record<string, Value>>) => void
  readonly custom?: SchemaFieldProps["custom"]
}

/** The fields of a JSON Schema of an object, those that are required first. */
export const SchemaForm = ({ custom, errors = new Map(), onValue, schema, value }: FormProps) => {
  const required = new Set(schema.required)
  const properties = Object.entries(schema.properties ?? {})
  const ordered = [
    ...properties.filter(([name]) => required.has(name)),
    ...properties.filter(([name]) => !required.has(name))
  ]
  return (
    <>
      {ordered.map(([name, property]) => (
        <SchemaField
          key={name}
          name={name}
          pointer={`#/${name}`}
          schema={property}
          value={value[name]}
          isRequired={required.has(name)}
          errors={errors}
          custom={custom}
          onValue={(next) => {
            const { [name]: _, ...rest } = value
            onValue(next === undefined ? rest : { ...value, [name]: next })
          }}
        />
      ))}
    </>
  )
}

export const SchemaField = (props: SchemaFieldProps) => {
  const own = props.custom?.(props)
  if (own !== undefined) return <>{own}</>
  const { errors, isRequired, name, pointer } = props
  const schema = plainSchema(props.schema)
  if (schema.type === "array") return <ListField {...props} schema={schema} />
  return (
    <Field
      label={labelOf(name)}
      help={[descriptionOf(schema), constraintsOf(schema)].filter(Boolean).join(" · ") || undefined}
      error={errors.get(pointer)}
      isRequired={isRequired}
    >
      {(attributes) => <Control {...props} schema={schema} attributes={attributes} />}
    </Field>
  )
}

interface ControlProps extends SchemaFieldProps {
  readonly attributes: { readonly id: string }
}

const Control = (props: ControlProps) => {
  const { attributes, isRequired, onValue, schema, value } = props
  if (schema.enum !== undefined || schema.type === "boolean") return <Choice {...props} />
  if (schema.type === "integer" || schema.type === "number") {
    return (
      <input
        {...attributes}
        type="number"
        required={isRequired}
        min={schema.minimum}
        max={schema.maximum}
        step={schema.type === "integer" ? 1 : "any"}
        placeholder={schema.default === undefined ? undefined : String(schema.default)}
        value={typeof value === "number" ? value : ""}
        onInput={({ currentTarget: { value: text, valueAsNumber } }) =>
          onValue(text === "" || Number.isNaN(valueAsNumber) ? undefined : valueAsNumber)
        }
      />
    )
  }
  if (schema.type !== "string") return <JsonText {...props} />
  const text = {
    ...attributes,
    required: isRequired,
    maxLength: schema.maxLength,
    placeholder: typeof schema.default === "string" ? schema.default : undefined,
    value: typeof value === "string" ? value : "",
    onInput: (event: { readonly currentTarget: { readonly value: string } }) =>
      onValue(event.currentTarget.value === "" ? undefined : event.currentTarget.value)
  }
  const isLong = (schema.maxLength ?? 0) > longText
  return isLong ? <textarea {...text} rows={4} /> : <input {...text} type="text" />
}

const longText = 200

/** One of some values; left out as long as none is chosen. */
const Choice = ({ attributes, isRequired, onValue, schema, value }: ControlProps) => {
  const options = schema.enum ?? [true, false]
  const chosen = options.findIndex((it) => it === value)
  const nameOf = (option: unknown) => {
    if (option === true) return texts.yes
    return option === false ? texts.no : String(option)
  }
  const unset =
    schema.default === undefined
      ? texts.form.notSet
      : `${texts.form.notSet} (${nameOf(schema.default)})`
  return (
    <select
      {...attributes}
      value={String(chosen)}
      required={isRequired}
      onChange={(event) => onValue(options[Number(event.currentTarget.value)])}
    >
      <option value="-1">{unset}</option>
      {options.map((option, index) => (
        <option key={String(option)} value={String(index)}>
          {nameOf(option)}
        </option>
      ))}
    </select>
  )
}

/** A value of another shape, as JSON. */
const JsonText = ({ attributes, onValue, value }: ControlProps) => (
  <textarea
    {...attributes}
    rows={4}
    class="code"
    defaultValue={value === undefined ? "" : JSON.stringify(value, null, 2)}
    onInput={({ currentTarget }) => {
      const parsed = parse(currentTarget.value)
      currentTarget.setCustomValidity(parsed.isJson ? "" : texts.form.invalidJson)
      if (parsed.isJson) onValue(parsed.value)
    }}
  />
)

const parse = (text: string): { readonly isJson: boolean; readonly value?: unknown } => {
  if (text.trim() === "") return { isJson: true }
  try {
    return { isJson: true, value: JSON.parse(text) }
  } catch {
    return { isJson: false }
  }
}

/** Items of one kind. */
const ListField = (props: SchemaFieldProps) => {
  const { errors, isRequired, name, onValue, pointer, schema, value } = props
  const items = Array.isArray(value) ? value : []
  const change = (next: ReadonlyArray<Value>) => onValue(next.length === 0 ? undefined : next)
  return (
    <fieldset>
      <legend>
        {labelOf(name)}
        {isRequired && <span class="faint"> ({texts.form.required})</span>}
      </legend>
      {schema.description !== undefined && <p class="help">{descriptionOf(schema)}</p>}
      {errors.has(pointer) && <p class="field-error">{errors.get(pointer)}</p>}
      {items.map((item, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- items have no other name than their place
        <div class="list-item" key={index}>
          <SchemaField
            {...props}
            name={texts.form.item(index + 1)}
            pointer={`${pointer}/${index}`}
            schema={schema.items ?? {}}
            value={item}
            isRequired
            onValue={(next) => change(items.map((it, at) => (at === index ? next : it)))}
          />
          <button
            type="button"
            class="small"
            aria-label={texts.form.removeItem(index + 1)}
            onClick={() => change(items.filter((_, at) => at !== index))}
          >
            ✕
          </button>
        </div>
      ))}
      {items.length < (schema.maxItems ?? Infinity) && (
        <button type="button" class="small" onClick={() => change([...items, ""])}>
          {texts.form.addItem}
        </button>
      )}
    </fieldset>
  )
}
