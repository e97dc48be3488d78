import { useState } from "preact/hooks"
import { dataUriOf, showBytes } from "../../api/files.ts"
import { Field } from "../../components/form/Field.tsx"
import { descriptionOf, labelOf, plainSchema } from "../../components/form/schema.ts"
import type { SchemaFieldProps } from "../../components/form/SchemaForm.tsx"
import { playgroundTexts } from "../../texts/en/playground.ts"
import { FileDrop } from "./FileDrop.tsx"
import { faultOf, limitsOf } from "./mediaFile.ts"
import type { Rules } from "./mediaFile.ts"

const words = playgroundTexts.media

interface Props extends SchemaFieldProps {
  readonly rules: Rules
}

/** A medium: a URL, or a local file, which becomes a data URI. */
export const MediaInput = (props: Props) => {
  const { errors, isRequired, name, onValue, pointer, rules, schema, value } = props
  const [file, setFile] = useState<{ name: string; size: number } | undefined>(undefined)
  const [fault, setFault] = useState<string | undefined>(undefined)
  const text = typeof value === "string" ? value : ""
  const label = labelOf(name)
  const choose = async (chosen: File) => {
    const found = await faultOf(chosen, rules)
    setFault(found)
    if (found !== undefined) return
    setFile({ name: chosen.name, size: chosen.size })
    onValue(await dataUriOf(chosen))
  }
  const description = descriptionOf(plainSchema(schema))
  return (
    <Field
      label={label}
      help={[description, limitsOf(rules)].filter(Boolean).join(" · ")}
      error={fault ?? errors.get(pointer)}
      isRequired={isRequired}
    >
      {(attributes) =>
        text.startsWith("data:") ? (
          <Chosen
            attributes={attributes}
            name={words.chosen(file?.name ?? label, showBytes(file?.size ?? text.length))}
            picture={rules.kind === "image" ? text : undefined}
            onRemove={() => onValue(isRequired ? "" : undefined)}
          />
        ) : (
          <>
            {rules.inline && <FileDrop label={label} rules={rules} onFile={choose} />}
            <input
              {...attributes}
              type="url"
              placeholder={rules.inline ? words.orUrl : words.url}
              required={isRequired}
              value={text}
              onInput={({ currentTarget }) => {
                setFault(undefined)
                onValue(currentTarget.value === "" && !isRequired ? undefined : currentTarget.value)
              }}
            />
          </>
        )
      }
    </Field>
  )
}

interface ChosenProps {
  readonly attributes?: { readonly id: string }
  readonly name: string
  readonly picture: string | undefined
  readonly onRemove: () => void
}

export const Chosen = ({ attributes, name, onRemove, picture }: ChosenProps) => (
  <div class="chosen-file">
    {picture !== undefined && <img src={picture} alt={words.preview} />}
    <span>{name}</span>
    <button {...attributes} type="button" class="small" onClick={onRemove}>
      {words.remove}
      <span class="hidden"> {name}</span>
    </button>
  </div>
)
