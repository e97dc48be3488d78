import { useState } from "preact/hooks"
import { basePath } from "../../api/address.ts"
import { api } from "../../api/client.ts"
import { Confirm, DialogForm, FormFault } from "../../components/form/DialogForm.tsx"
import { TextField } from "../../components/form/Field.tsx"
import { Icon } from "../../components/Icon.tsx"
import { Link } from "../../components/Link.tsx"
import { Menu } from "../../components/Menu.tsx"
import { SecretDialog } from "../../components/Secret.tsx"
import { hrefOf, navigate } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { UserDialog } from "./UserDialog.tsx"
import { changeOf } from "./userForm.ts"
import type { User } from "./userForm.ts"

const words = operatorTexts.user

type Asked = "change" | "link" | "disable" | "delete" | undefined

interface Props {
  readonly user: User
  readonly onChanged: (user: User) => void
}

/** The operator's actions on a user. */
export const UserActions = ({ onChanged, user }: Props) => {
  const [asked, setAsked] = useState<Asked>(undefined)
  return (
    <>
      <Link to="/" query={{ user_id: user.id }} class="button">
        {operatorTexts.users.viewAs}
      </Link>
      <Menu class="square" label={texts.actionsFor(user.email)} button={<Icon name="more" />}>
        <button type="button" onClick={() => setAsked("change")}>
          {words.change}
        </button>
        <button type="button" onClick={() => setAsked("link")}>
          {words.link}
        </button>
        <a href={`${basePath}/manage/v1/users/${user.id}/export`} download>
          {words.export}
        </a>
        <hr />
        <button type="button" onClick={() => setAsked("disable")}>
          {user.disabled ? words.enable : words.disable}
        </button>
        <button type="button" class="danger" onClick={() => setAsked("delete")}>
          {words.delete}
        </button>
      </Menu>
      <Dialogs {...{ asked, onChanged, user }} onClose={() => setAsked(undefined)} />
    </>
  )
}

/** A one-time link, shown once. */
const LinkDialogs = ({
  onClose,
  user
}: {
  readonly user: string
  readonly onClose: () => void
}) => {
  const [url, setUrl] = useState<string | undefined>(undefined)
  const make = async () => {
    const made = await api.POST("/manage/v1/users/{id}/sign-in-links", {
      path: { id: user }
    })
    setUrl(made.url)
  }
  return url === undefined ? (
    <Confirm
      title={words.link}
      detail={words.linkDetail}
      action={words.makeLink}
      onSubmit={make}
      onClose={onClose}
      isFollowed
    />
  ) : (
    <SecretDialog
      title={words.link}
      detail={words.linkDetail}
      what={words.link}
      secret={url}
      onClose={onClose}
    />
  )
}

interface DialogsProps extends Props {
  readonly asked: Asked
  readonly onClose: () => void
}

const Dialogs = ({ asked, onChanged, onClose, user }: DialogsProps) => {
  const path = { id: user.id }
  if (asked === undefined) return null
  if (asked === "change") {
    return (
      <UserDialog
        of={user}
        onSubmit={async (fields) => {
          const body = changeOf(user, fields)
          onChanged(await api.PATCH("/manage/v1/users/{id}", { path, body }))
        }}
        onClose={onClose}
      />
    )
  }
  if (asked === "link") return <LinkDialogs user={user.id} onClose={onClose} />
  if (asked === "delete") {
    return (
      <DeleteDialog
        user={user}
        onDelete={async () => {
          await api.DELETE("/manage/v1/users/{id}", { path })
          navigate(hrefOf("/users"))
        }}
        onClose={onClose}
      />
    )
  }
  const { disabled } = user
  return (
    <Confirm
      title={disabled ? words.enableTitle(user.email) : words.disableTitle(user.email)}
      detail={disabled ? words.enableDetail : words.disableDetail}
      action={disabled ? words.enable : words.disable}
      isDangerous={!disabled}
      onSubmit={async () => {
        const body = { disabled: !disabled }
        onChanged(await api.PATCH("/manage/v1/users/{id}", { path, body }))
      }}
      onClose={onClose}
    />
  )
}

interface DeleteProps {
  readonly user: User
  readonly onDelete: () => Promise<void>
  readonly onClose: () => void
}

/** Deleting cannot be undone, so the operator has to type the user's address. */
const DeleteDialog = ({ onClose, onDelete, user: { email } }: DeleteProps) => {
  const [typed, setTyped] = useState("")
  const [isFaulty, setFaulty] = useState(false)
  return (
    <DialogForm
      title={words.deleteTitle(email)}
      action={words.delete}
      isDangerous
      onSubmit={async () => {
        setFaulty(typed.trim() !== email)
        if (typed.trim() !== email) throw new FormFault()
        await onDelete()
      }}
      onClose={onClose}
    >
      <p>{words.deleteDetail}</p>
      <TextField
        label={words.typeAddress(email)}
        autocomplete="off"
        error={isFaulty ? words.otherAddress : undefined}
        value={typed}
        onText={setTyped}
      />
    </DialogForm>
  )
}
