import { Fragment } from "preact"
import type { VNode } from "preact"
import { parseJson } from "../../format/json.ts"
import { texts } from "../../texts/en.ts"
import { Field } from "./Field.tsx"
import { Fold } from "./Fold.tsx"
import { constraintsOf, descriptionOf, labelOf, plainSchema } from "./schema.ts"
import type { JsonSchema } from "./schema.ts"

export type Value = unknown

export interface SchemaFieldProps {
  readonly name: string
  /** The JSON pointer of the value, as in problems: `#/size`. */
  readonly pointer: string
  readonly schema: JsonSchema
  readonly value: Value
  readonly isRequired: boolean
  /** The faults of the request, by pointer. */
  readonly errors: ReadonlyMap<string, string>
  /** `undefined` omits the field. */
  readonly onValue: (value: Value) => void
}

type Fields = Readonly<Record<string, Value>>

interface FormProps {
  readonly schema: JsonSchema
  readonly value: Fields
  readonly errors: ReadonlyMap<string, string>
  /** Changes the newest value, because a file may be read while other fields are filled in. */
  readonly onChange: (change: (before: Fields) => Fields) => void
  /** A field that the page renders itself, such as a medium; `undefined` for others. */
  readonly custom: (props: SchemaFieldProps) => VNode | undefined
  /** Optional fields that are collapsed. */
  readonly isAdvanced: (name: string) => boolean
}

/** The fields of a JSON Schema of an object: required fields first, the others under “Advanced”. */
export const SchemaForm = (form: FormProps) => {
  const { custom, errors, isAdvanced, onChange, schema, value } = form
  const required = new Set(schema.required)
  const names = Object.keys(schema.properties ?? {})
  const optional = names.filter((name) => !required.has(name))
  const advanced = optional.filter(isAdvanced)
  const isFaulty = advanced.some((name) =>
    [...errors.keys()].some((at) => at.startsWith(`#/${name}`))
  )
  const fieldOf = (name: string) => {
    const props: SchemaFieldProps = {
      name,
      pointer: `#/${name}`,
      schema: schema.properties?.[name] ?? {},
      value: value[name],
      isRequired: required.has(name),
      errors,
      onValue: (next) =>
        onChange((before) => {
          const { [name]: _, ...rest } = before
          return next === undefined ? rest : { ...before, [name]: next }
        })
    }
    return <Fragment key={name}>{custom(props) ?? <SchemaField {...props} />}</Fragment>
  }
  return (
    <>
      {names.filter((name) => required.has(name)).map(fieldOf)}
      {optional.filter((name) => !isAdvanced(name)).map(fieldOf)}
      {advanced.length > 0 && (
        <Fold name={texts.form.advanced} isFaulty={isFaulty}>
          {advanced.map(fieldOf)}
        </Fold>
      )}
    </>
  )
}

const SchemaField = (props: SchemaFieldProps) => {
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

/** One of several values; omitted until one is chosen. */
const Choice = ({ attributes, isRequired, onValue, schema, value }: ControlProps) => {
  const options = schema.enum ?? [true, false]
  const chosen = options.findIndex((it) => it === value)
  const nameOf = (option: unknown) => {
    if (option === true) return texts.yes
    return option === false ? texts.no : String(option)
  }
  const unset =
    schema.default === undefined ? texts.form.notSet : texts.form.byDefault(nameOf(schema.default))
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

/** Any other value, as JSON text. */
const JsonText = ({ attributes, onValue, value }: ControlProps) => (
  <textarea
    {...attributes}
    rows={4}
    class="code"
    defaultValue={value === undefined ? "" : JSON.stringify(value, null, 2)}
    onInput={({ currentTarget }) => {
      const { value: text } = currentTarget
      const parsed = parseJson(text)
      const isJson = parsed !== undefined || text.trim() === ""
      currentTarget.setCustomValidity(isJson ? "" : texts.form.invalidJson)
      if (isJson) onValue(parsed)
    }}
  />
)

/** A list of items of the same type. */
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
