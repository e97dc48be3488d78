import { useRef, useState } from "preact/hooks"
import { dataUriOf, showBytes } from "../../api/files.ts"
import { Field } from "../../components/form/Field.tsx"
import { descriptionOf, labelOf, plainSchema } from "../../components/form/schema.ts"
import type { SchemaFieldProps } from "../../components/form/SchemaForm.tsx"
import { texts } from "../../texts/en.ts"
import { playgroundTexts } from "../../texts/en/playground.ts"
import { FileDrop } from "./FileDrop.tsx"
import { faultOf, limitsOf } from "./mediaFile.ts"
import type { Rules } from "./mediaFile.ts"
import { Chosen } from "./MediaInput.tsx"

const words = playgroundTexts.media

interface Props extends SchemaFieldProps {
  readonly rules: Rules
}

const isText = (value: unknown): value is string => typeof value === "string"

/** Several media: files that are dropped or chosen, or URLs. */
export const MediaListInput = (props: Props) => {
  const { errors, isRequired, name, onValue, pointer, rules, schema, value } = props
  const { maxItems = Infinity } = plainSchema(schema)
  const items = Array.isArray(value) ? value.filter(isText) : []
  // Files that are read at the same time must not replace one another
  const newest = useRef(items)
  newest.current = items
  const [names, setNames] = useState<ReadonlyMap<string, string>>(new Map())
  const [fault, setFault] = useState<string | undefined>(undefined)
  const [address, setAddress] = useState("")
  const label = labelOf(name)
  const change = (next: ReadonlyArray<string>) => onValue(next.length === 0 ? undefined : next)
  const add = (item: string) => {
    setFault(undefined)
    change([...newest.current, item])
  }
  const choose = async (file: File) => {
    const found = await faultOf(file, rules)
    if (found !== undefined) return setFault(found)
    const uri = await dataUriOf(file)
    setNames((now) => new Map([...now, [uri, words.chosen(file.name, showBytes(file.size))]]))
    add(uri)
  }
  const itemFault = items
    .map((_, index) => errors.get(`${pointer}/${index}`))
    .find((it) => it !== undefined)
  return (
    <Field
      label={label}
      help={[descriptionOf(plainSchema(schema)), limitsOf(rules)].filter(Boolean).join(" · ")}
      error={fault ?? errors.get(pointer) ?? itemFault}
      isRequired={isRequired}
    >
      {(attributes) => (
        <>
          {items.map((item, index) => (
            <Chosen
              // oxlint-disable-next-line react/no-array-index-key -- the same picture may be there twice
              key={index}
              name={
                names.get(item) ?? (item.startsWith("data:") ? texts.form.item(index + 1) : item)
              }
              picture={rules.kind === "image" && item.startsWith("data:") ? item : undefined}
              onRemove={() => change(items.filter((_, at) => at !== index))}
            />
          ))}
          {items.length < maxItems && (
            <>
              {rules.inline && <FileDrop label={label} rules={rules} onFile={choose} />}
              <div class="with-button">
                <input
                  {...attributes}
                  type="url"
                  placeholder={rules.inline ? words.orUrl : words.url}
                  required={isRequired && items.length === 0 && !rules.inline}
                  value={address}
                  onInput={({ currentTarget }) => setAddress(currentTarget.value)}
                />
                <button
                  type="button"
                  disabled={!URL.canParse(address)}
                  onClick={() => {
                    add(address)
                    setAddress("")
                  }}
                >
                  {texts.form.addItem}
                </button>
              </div>
            </>
          )}
        </>
      )}
    </Field>
  )
}
