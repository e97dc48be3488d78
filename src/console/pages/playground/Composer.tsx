import type { ComponentChildren } from "preact"
import { useRef, useState } from "preact/hooks"
import { dataUriOf, showBytes } from "../../api/files.ts"
import { Field } from "../../components/form/Field.tsx"
import { Icon } from "../../components/Icon.tsx"
import { chatTexts } from "../../texts/en/chat.ts"
import type { Picture } from "./chat.ts"
import { urlOf } from "./chat.ts"
import { Chosen } from "./MediaInput.tsx"
import { useFiles } from "./useFiles.ts"

const words = chatTexts

/** The types that every vendor's chat accepts; the model decides about others. */
const mediaTypes = ["image/png", "image/jpeg", "image/webp"]
const bytesMax = 5 * 1024 * 1024
const picturesMax = 4

/** A picture attached to the next message. */
export interface Attached extends Picture {
  readonly name: string
}

interface Props {
  readonly text: string
  readonly onText: (text: string) => void
  readonly pictures: ReadonlyArray<Attached>
  readonly onPictures: (pictures: ReadonlyArray<Attached>) => void
  /** The send button. */
  readonly children: ComponentChildren
}

const faultOf = (file: File): string | undefined => {
  if (!mediaTypes.includes(file.type)) return words.wrongType(file.name)
  return file.size > bytesMax ? words.tooLarge(file.name, showBytes(bytesMax)) : undefined
}

const attachedOf = async (file: File): Promise<Attached> => {
  const uri = await dataUriOf(file)
  return { name: file.name, mediaType: file.type, data: uri.slice(uri.indexOf(",") + 1) }
}

/** The next message: text, and pictures that are dropped, pasted or chosen. */
export const Composer = ({ children, onPictures, onText, pictures, text }: Props) => {
  const [fault, setFault] = useState<string | undefined>(undefined)
  // Files that are read at the same time must not replace one another
  const newest = useRef(pictures)
  newest.current = pictures
  const attach = async (files: ReadonlyArray<File>) => {
    const wrong = files.map(faultOf).find((it) => it !== undefined)
    const read = await Promise.all(files.filter((it) => faultOf(it) === undefined).map(attachedOf))
    const all = [...newest.current, ...read]
    setFault(all.length > picturesMax ? words.tooMany(picturesMax) : wrong)
    onPictures(all.slice(0, picturesMax))
  }
  const { handlers, input, isOver, take } = useFiles(attach)
  return (
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- a keyboard has the button
    <div class={isOver ? "composer over" : "composer"} {...handlers}>
      <Field
        label={words.message}
        isRequired={pictures.length === 0}
        {...(fault === undefined ? {} : { error: fault })}
      >
        {(attributes) => (
          <textarea
            {...attributes}
            rows={3}
            required={pictures.length === 0}
            value={text}
            onInput={({ currentTarget }) => onText(currentTarget.value)}
            onPaste={(event) => {
              const files = [...(event.clipboardData?.files ?? [])]
              if (files.length === 0) return
              event.preventDefault()
              take(files)
            }}
          />
        )}
      </Field>
      {pictures.map((picture, index) => (
        <Chosen
          // oxlint-disable-next-line react/no-array-index-key -- the same picture may be there twice
          key={index}
          name={picture.name}
          picture={urlOf(picture)}
          onRemove={() => onPictures(pictures.filter((_, at) => at !== index))}
        />
      ))}
      <div class="composer-bar">
        <label class="attach" title={words.attachHelp(showBytes(bytesMax))}>
          <Icon name="pictures" />
          {words.attach}
          <input {...input} multiple accept={mediaTypes.join(",")} />
        </label>
        <span class="spacer" />
        {children}
      </div>
    </div>
  )
}
