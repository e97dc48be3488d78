import { useEffect, useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { readModels } from "../../api/lists.ts"
import { useResource } from "../../api/resource.ts"
import { isOverAll } from "../../api/session.ts"
import { modelPath } from "../../format/paths.ts"
import { hrefOf, navigate } from "../../router/location.ts"
import type { Query } from "../../router/location.ts"
import { routes } from "../../routes.ts"
import { texts } from "../../texts/en.ts"
import { openTexts } from "../../texts/en/open.ts"
import { Dialog } from "../form/Dialog.tsx"
import { Icon } from "../Icon.tsx"
import type { IconName } from "../Icon.tsx"

const words = openTexts

interface Found {
  readonly path: string
  readonly query?: Query
  readonly name: string
  readonly icon: IconName
}

/** A text that is long enough for an id and contains a digit, so it is not a word. */
const looksLikeId = (text: string): boolean => /^(?=.*\d)[\w-]{8,}$/u.test(text)

const shownMax = 8
const usersMax = 5
const typedMin = 2

/** Requests wait for a pause in typing. */
const pauseMillis = 250

/** For the operator: users whose address, name or id contains the text. */
const useUsers = (text: string, isOperator: boolean): ReadonlyArray<Found> => {
  const [asked, setAsked] = useState("")
  useEffect(() => {
    const timer = setTimeout(() => setAsked(text), pauseMillis)
    return () => clearTimeout(timer)
  }, [text])
  const isAsked = isOperator && asked.length >= typedMin
  const users = useResource(isAsked ? asked : "", async () =>
    isAsked
      ? api.GET("/manage/v1/users", { query: { q: asked, limit: usersMax } }).catch(() => undefined)
      : undefined
  )
  if (!isAsked) return []
  return (users.data?.data ?? []).map(({ email, id }) => ({
    path: `/users/${id}`,
    name: email,
    icon: "user"
  }))
}

const useFound = (text: string, isOperator: boolean): ReadonlyArray<Found> => {
  const models = useResource("models of the palette", readModels)
  const users = useUsers(text.trim(), isOperator)
  const role = isOperator ? "operator" : "user"
  const pages = routes
    .filter((it) => it.group !== undefined && (it.role === "both" || it.role === role))
    .map(({ icon = "page", path, title }): Found => ({ path, name: title, icon }))
  const names = (models.data ?? []).map(({ model, vendor }): Found => ({
    icon: "cube",
    path: modelPath({ model, vendor }),
    name: `${vendor}/${model}`
  }))
  const asked = text.trim().toLowerCase()
  const all = asked === "" ? pages : [...pages, ...names]
  const unique = new Map(all.map((it) => [it.path, it]))
  const matches = [...unique.values()].filter(({ name }) => name.toLowerCase().includes(asked))
  return [
    ...(looksLikeId(asked)
      ? [{ path: `/open/${asked}`, name: words.byId(asked), icon: "arrows" as const }]
      : []),
    ...users,
    ...matches.slice(0, shownMax),
    ...(asked.length >= typedMin ? [searchFor(text.trim(), isOperator)] : [])
  ]
}

/** The list in which to search for the text. */
const searchFor = (q: string, isOperator: boolean): Found =>
  isOperator
    ? { path: "/users", query: { q }, name: words.usersWith(q), icon: "search" }
    : { path: "/tasks", query: { q }, name: words.tasksWith(q), icon: "search" }

/** The palette itself, loaded when it is opened. */
export const PaletteSearch = ({ onClose }: { readonly onClose: () => void }) => {
  const [text, setText] = useState("")
  const [at, setAt] = useState(0)
  const isOperator = isOverAll()
  const found = useFound(text, isOperator)
  const help = isOperator ? words.operatorHelp : words.help
  const index = Math.min(at, found.length - 1)
  const current = found[index]
  const open = (it: Found | undefined) => {
    if (it === undefined) return
    onClose()
    navigate(hrefOf(it.path, it.query))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1))
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0))
    else if (event.key === "Enter") open(current)
    else return
    event.preventDefault()
  }
  return (
    <Dialog title={texts.pages.open} onClose={onClose}>
      <input
        type="text"
        role="combobox"
        autocomplete="off"
        spellcheck={false}
        aria-label={texts.openLabel}
        aria-expanded="true"
        aria-controls="palette"
        aria-activedescendant={current === undefined ? undefined : `palette-${index}`}
        placeholder={texts.openLabel}
        value={text}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value)
          setAt(0)
        }}
        onKeyDown={onKeyDown}
      />
      <div id="palette" class="palette" role="listbox" aria-label={words.results}>
        {found.map((it, place) => (
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/interactive-supports-focus -- the input has the focus and the keys
          <div
            key={hrefOf(it.path, it.query)}
            id={`palette-${place}`}
            role="option"
            aria-selected={it === current}
            onClick={() => open(it)}
          >
            <Icon name={it.icon} />
            <span class="clip">{it.name}</span>
          </div>
        ))}
      </div>
      <p class="help" role="status">
        {found.length === 0 ? words.noMatch : help}
      </p>
    </Dialog>
  )
}
