import { createElement } from "preact"
import type { ComponentChildren, TargetedInputEvent } from "preact"
import { useId } from "preact/hooks"
import { texts } from "../../texts/en.ts"

interface FieldProps {
  readonly label: string
  readonly help?: string | undefined
  readonly error?: string | undefined
  readonly isRequired?: boolean
  /** The control. The attributes connect it to its label and description. */
  readonly children: (attributes: {
    readonly id: string
    readonly "aria-describedby": string | undefined
    readonly "aria-invalid": boolean | undefined
  }) => ComponentChildren
}

/** A control with its label, help text and error. */
export const Field = ({ children, error, help, isRequired = false, label }: FieldProps) => {
  const id = useId()
  const described = [
    help === undefined ? "" : `${id}-help`,
    error === undefined ? "" : `${id}-error`
  ]
    .filter(Boolean)
    .join(" ")
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isRequired && <span class="faint"> ({texts.form.required})</span>}
      </label>
      {children({
        id,
        "aria-describedby": described === "" ? undefined : described,
        "aria-invalid": error === undefined ? undefined : true
      })}
      {help !== undefined && (
        <p class="help" id={`${id}-help`}>
          {help}
        </p>
      )}
      {error !== undefined && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  )
}

interface TextFieldProps {
  readonly label: string
  readonly value: string
  readonly type?: "text" | "email" | "password" | "url" | "number" | "date" | "datetime-local"
  readonly autocomplete?: string
  readonly required?: boolean
  readonly placeholder?: string
  readonly maxLength?: number
  readonly inputMode?: "text" | "decimal" | "numeric"
  readonly help?: string
  readonly error?: string | undefined
  readonly onText: (text: string) => void
}

/** A single-line text field. */
export const TextField = ({
  error,
  help,
  label,
  onText,
  type = "text",
  ...rest
}: TextFieldProps) => (
  <Field label={label} help={help} error={error}>
    {(attributes) =>
      // In JSX the type of an input must be a literal
      createElement("input", {
        ...rest,
        ...attributes,
        type,
        onInput: (event: TargetedInputEvent<HTMLInputElement>) => onText(event.currentTarget.value)
      })
    }
  </Field>
)

interface SelectFieldProps {
  readonly label: string
  readonly value: string
  /** Values with their labels. */
  readonly options: ReadonlyArray<readonly [value: string, label: string]>
  readonly help?: string
  readonly onText: (value: string) => void
}

export const SelectField = ({ help, label, onText, options, value }: SelectFieldProps) => (
  <Field label={label} help={help}>
    {(attributes) => (
      <select {...attributes} value={value} onChange={(event) => onText(event.currentTarget.value)}>
        {options.map(([option, name]) => (
          <option key={option} value={option}>
            {name}
          </option>
        ))}
      </select>
    )}
  </Field>
)
