import { useId } from "preact/hooks"
import { DialogForm, FormFault } from "../../components/form/DialogForm.tsx"
import { SelectField, TextField } from "../../components/form/Field.tsx"
import { useFields } from "../../components/form/useFields.ts"
import { texts } from "../../texts/en.ts"
import { webhookTexts as words } from "../../texts/en/webhooks.ts"
import { eventTypesOf, fieldsOf, withFormat } from "./endpointForm.ts"
import type { Endpoint, EndpointFields } from "./endpointForm.ts"

interface Props {
  /** The endpoint to change. Absent: a new endpoint. */
  readonly of?: Endpoint
  readonly onSubmit: (fields: EndpointFields) => Promise<void>
  readonly onClose: () => void
}

/** The URL, description and events of an endpoint. */
export const EndpointDialog = ({ of, onClose, onSubmit }: Props) => {
  const { change, fields, text } = useFields(() => fieldsOf(of))
  const { events, format } = fields
  const eventTypes = eventTypesOf(format)
  const isWithout = events.length === 0
  const fault = useId()
  const submit = async () => {
    if (isWithout) throw new FormFault()
    await onSubmit(fields)
  }
  return (
    <DialogForm
      title={of === undefined ? words.create : words.change}
      action={of === undefined ? words.create : texts.save}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label={words.url}
        help={words.urlHelp}
        type="url"
        required
        maxLength={2048}
        autocomplete="off"
        {...text("url")}
      />
      <TextField
        label={words.description}
        maxLength={200}
        autocomplete="off"
        {...text("description")}
      />
      <SelectField
        label={words.format}
        help={words.formatHelp}
        value={format}
        options={words.formats}
        onText={(chosen) => change(withFormat(fields, chosen))}
      />
      <fieldset>
        <legend>{words.events}</legend>
        {eventTypes.map((type) => (
          <label key={type} class="choice">
            <input
              type="checkbox"
              checked={events.includes(type)}
              aria-invalid={isWithout || undefined}
              aria-describedby={isWithout ? fault : undefined}
              onChange={({ currentTarget: { checked } }) =>
                change({
                  events: eventTypes.filter((it) => (it === type ? checked : events.includes(it)))
                })
              }
            />{" "}
            <code>{type}</code> <span class="faint">{words.eventNames[type]}</span>
          </label>
        ))}
        {isWithout && (
          <p id={fault} class="field-error" role="alert">
            {words.noEvent}
          </p>
        )}
      </fieldset>
    </DialogForm>
  )
}
