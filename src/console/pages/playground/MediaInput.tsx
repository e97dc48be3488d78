import { useId, useState } from "preact/hooks"
import { dataUriOf, showBytes } from "../../api/files.ts"
import type { Schemas } from "../../api/schema.ts"
import { Field } from "../../components/Field.tsx"
import { descriptionOf, labelOf, plainSchema } from "../../components/schema.ts"
import type { SchemaFieldProps } from "../../components/SchemaForm.tsx"
import { playgroundTexts } from "../../texts/en/playground.ts"

type Rules = Schemas["MediaField"]

const words = playgroundTexts.media

/** What a field takes, in a line. */
export const limitsOf = (rules: Rules): string =>
  [
    words.types(rules.media_types.map((it) => it.replace(/^\w+\//u, "").toUpperCase()).join(", ")),
    words.upTo(showBytes(rules.max_bytes)),
    rules.min_side === null ? "" : words.sides(rules.min_side, rules.max_side),
    rules.min_seconds === null || rules.max_seconds === null
      ? ""
      : words.seconds(rules.min_seconds, rules.max_seconds),
    rules.inline ? "" : words.byUrl
  ]
    .filter((it) => it !== "")
    .join(" · ")

/** What can be seen here already; the gateway judges the bytes. */
const faultOf = async (file: File, rules: Rules): Promise<string | undefined> => {
  if (!rules.media_types.includes(file.type)) return words.wrongType(file.type)
  if (file.size > rules.max_bytes) return words.tooLarge(showBytes(file.size))
  const { max_side: most, min_side: least } = rules
  if (least === null) return undefined
  const picture = await createImageBitmap(file).catch(() => undefined)
  if (picture === undefined) return words.unreadable
  const { height, width } = picture
  picture.close()
  const fits = (side: number) => side >= least && (most === null || side <= most)
  return fits(width) && fits(height) ? undefined : words.wrongSides(width, height)
}

interface Props extends SchemaFieldProps {
  readonly rules: Rules
}

/** A medium: an address, or a file of the device, which becomes a data URI. */
export const MediaInput = ({
  errors,
  isRequired,
  name,
  onValue,
  pointer,
  rules,
  schema,
  value
}: Props) => {
  const [file, setFile] = useState<{ name: string; size: number } | undefined>(undefined)
  const [fault, setFault] = useState<string | undefined>(undefined)
  const text = typeof value === "string" ? value : ""
  const isFile = text.startsWith("data:")
  const label = labelOf(name)
  const choose = async (chosen: File | undefined) => {
    if (chosen === undefined) return
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
        isFile ? (
          <Chosen
            attributes={attributes}
            name={words.chosen(file?.name ?? label, showBytes(file?.size ?? text.length))}
            picture={rules.kind === "image" ? text : undefined}
            onRemove={() => onValue(isRequired ? "" : undefined)}
          />
        ) : (
          <>
            <input
              {...attributes}
              type="url"
              placeholder={words.url}
              required={isRequired}
              value={text}
              onInput={({ currentTarget }) => {
                setFault(undefined)
                onValue(currentTarget.value === "" && !isRequired ? undefined : currentTarget.value)
              }}
            />
            {rules.inline && (
              <FileInput label={label} rules={rules} onFile={(it) => void choose(it)} />
            )}
          </>
        )
      }
    </Field>
  )
}

interface FileProps {
  readonly label: string
  readonly rules: Rules
  readonly onFile: (file: File | undefined) => void
}

const FileInput = ({ label, onFile, rules }: FileProps) => {
  const id = useId()
  return (
    <div class="file">
      <label class="faint" for={id}>
        {words.orFile}
        <span class="hidden"> {words.file(label)}</span>
      </label>
      <input
        id={id}
        type="file"
        accept={rules.media_types.join(",")}
        onChange={({ currentTarget }) => onFile(currentTarget.files?.[0])}
      />
    </div>
  )
}

interface ChosenProps {
  readonly attributes: { readonly id: string }
  readonly name: string
  readonly picture: string | undefined
  readonly onRemove: () => void
}

const Chosen = ({ attributes, name, onRemove, picture }: ChosenProps) => (
  <div class="chosen-file">
    {picture !== undefined && <img src={picture} alt={words.preview} />}
    <span>{name}</span>
    <button {...attributes} type="button" class="small" onClick={onRemove}>
      {words.remove}
    </button>
  </div>
)
