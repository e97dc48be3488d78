import { useState } from "preact/hooks"
import { basePath } from "../../api/address.ts"
import { api, dataOf } from "../../api/client.ts"
import { Confirm } from "../../components/Dialog.tsx"
import { Link } from "../../components/Link.tsx"
import { SecretDialog } from "../../components/Secret.tsx"
import { hrefOf, navigate } from "../../router/location.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { UserDialog } from "./UserDialog.tsx"
import { changeOf } from "./userForm.ts"
import type { User } from "./userForm.ts"

const words = operatorTexts.user

type Asked = "change" | "disable" | "delete" | undefined

interface Props {
  readonly user: User
  readonly onChanged: (user: User) => void
}

/** What the operator does with a user. */
export const UserActions = ({ onChanged, user }: Props) => {
  const [asked, setAsked] = useState<Asked>(undefined)
  return (
    <>
      <Link to="/" query={{ user_id: user.id }} class="button">
        {operatorTexts.users.viewAs}
      </Link>
      <button type="button" onClick={() => setAsked("change")}>
        {words.change}
      </button>
      <LinkButton user={user.id} />
      <a class="button" href={`${basePath}/manage/v1/users/${user.id}/export`} download>
        {words.export}
      </a>
      <button type="button" onClick={() => setAsked("disable")}>
        {user.disabled ? words.enable : words.disable}
      </button>
      <button type="button" class="danger" onClick={() => setAsked("delete")}>
        {words.delete}
      </button>
      <Dialogs {...{ asked, onChanged, user }} onClose={() => setAsked(undefined)} />
    </>
  )
}

/** A one-time link, shown once. */
const LinkButton = ({ user }: { readonly user: string }) => {
  const [state, setState] = useState<"none" | "asked" | { readonly url: string }>("none")
  const close = () => setState("none")
  const make = async () => {
    const { url } = await dataOf(
      api.POST("/manage/v1/users/{id}/sign-in-links", { params: { path: { id: user } } })
    )
    // The confirmation closes when this has ended
    setTimeout(() => setState({ url }))
  }
  return (
    <>
      <button type="button" onClick={() => setState("asked")}>
        {words.link}
      </button>
      {state === "asked" && (
        <Confirm
          title={words.linkTitle}
          detail={words.linkDetail}
          action={words.makeLink}
          onConfirm={make}
          onClose={close}
        />
      )}
      {typeof state === "object" && (
        <SecretDialog
          title={words.linkTitle}
          detail={words.linkDetail}
          what={words.link}
          secret={state.url}
          onClose={close}
        />
      )}
    </>
  )
}

interface DialogsProps extends Props {
  readonly asked: Asked
  readonly onClose: () => void
}

const Dialogs = ({ asked, onChanged, onClose, user }: DialogsProps) => {
  const params = { path: { id: user.id } }
  if (asked === undefined) return null
  if (asked === "change") {
    return (
      <UserDialog
        of={user}
        onSubmit={async (fields) => {
          const body = changeOf(user, fields)
          onChanged(await dataOf(api.PATCH("/manage/v1/users/{id}", { params, body })))
        }}
        onClose={onClose}
      />
    )
  }
  if (asked === "delete") {
    return (
      <Confirm
        title={words.deleteTitle(user.email)}
        detail={words.deleteDetail}
        action={words.delete}
        isDangerous
        onConfirm={async () => {
          await dataOf(api.DELETE("/manage/v1/users/{id}", { params }))
          navigate(hrefOf("/users"))
        }}
        onClose={onClose}
      />
    )
  }
  const { disabled } = user
  return (
    <Confirm
      title={disabled ? words.enableTitle : words.disableTitle}
      detail={disabled ? words.enableDetail : words.disableDetail}
      action={disabled ? words.enable : words.disable}
      isDangerous={!disabled}
      onConfirm={async () => {
        const body = { disabled: !disabled }
        onChanged(await dataOf(api.PATCH("/manage/v1/users/{id}", { params, body })))
      }}
      onClose={onClose}
    />
  )
}
