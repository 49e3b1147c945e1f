"""What git loses is called out, in every form in which git accepts it."""

from __future__ import annotations

import pytest

from reviews.presenters import shell
from reviews.presenters.shell_git import RUNS_OTHER, UNKNOWN_PROGRAM
from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud

LOSSES = {
    "Discards changes": [
        *("reset --hard", "reset --hard HEAD~3", "reset --har", "reset -q --h"),
        *("reset --merge", "checkout -- src/a.py", "checkout HEAD -- .", "checkout -f"),
        *("checkout --forc main", "checkout --ours a", "checkout -qf main"),
        *("restore a.py", "restore .", "restore --source=HEAD~2 a"),
        *("switch --discard-changes main", "switch -f main", "switch --disc main"),
        *("submodule deinit -f --all", "read-tree --reset -u HEAD"),
        *("merge --abort", "rebase --abort", "checkout-index -f -a"),
    ],
    "May discard changes": ["checkout .", "checkout HEAD a.py", "checkout a.py"],
    "Deletes untracked files": ["clean -fdx", "clean -xfd", "clean --force -d"],
    "Deletes stashed changes": ["stash drop", "stash drop stash@{1}", "stash clear"],
    "Deletes a branch or tag": [
        *("branch -D old", "branch -d old", "branch --delete --force old"),
        *("branch --del old", "branch -rd origin/x", "tag -d v1", "tag --delete v1"),
        *("push origin --delete main", "push -d origin x", "push origin :main"),
        *("push origin --del x", "push --mirror", "push --prune origin"),
        *("fetch --prune", "push origin a:b :c"),
    ],
    "Overwrites history": [
        *("push --force", "push -f", "push -uf origin main", "push origin +main"),
        *("push origin +a:b", "push --force-with-lease", "push --force-w=main"),
        *("push --mirror", "push --mirr", "push origin -- +main", "push --forc"),
        *("branch -f main HEAD~3", "branch -M a b", "tag -f v1", "tag --force v1"),
        *("switch -C main", "switch --force-create main", "checkout -B main"),
        "fetch origin +a:b",
    ],
    "Deletes or rewrites": [
        *("reflog expire --expire=now --all", "reflog delete HEAD@{1}"),
        *("gc --prune=now", "gc", "prune", "repack -a -d", "repack -ad"),
        *("filter-branch --tree-filter x", "filter-repo --path x", "rebase main"),
        *("rebase -i HEAD~3", "commit --amend", "commit --am -m x", "pull --rebase"),
        *("update-ref -d refs/heads/x", "update-ref --stdin", "replace a b"),
        *("replace -d a", "replace --edit a", "notes remove", "notes prune"),
        *("remote remove origin", "remote rm x", "symbolic-ref -d HEAD"),
        *("symbolic-ref --del X", "symbolic-ref HEAD refs/heads/x", "maintenance run"),
    ],
    "Deletes files": [
        *("rm a", "rm -f a", "rm -r --cached a", "worktree remove --force x"),
        *("worktree remove x", "sparse-checkout set src", "sparse-checkout disable"),
    ],
    "Overwrites a file": ["mv -f a b", "diff --output=f", "format-patch -o d HEAD~1"],
    "Connects to the network": ["push", "fetch", "clone x y", "ls-remote", "pull"],
    "Skips the checks": ["commit -n -m x", "commit --no-verify", "commit --no-ver"],
}
RSYNC = "Deletes or overwrites files at the other end"
BEFORE = (
    "git {}",
    "git -C /srv/repo {}",
    "git -c user.name=x {}",
    "git --git-dir=/srv/repo/.git --work-tree /srv/repo {}",
    "git --no-pager -C a -C b {}",
    "sudo git {}",
    "timeout 5 /usr/bin/git {}",
    "'git' {}",
    "/usr/lib/git-core/git-{}",
)


def read(command):
    return shell.parse_command(command, {})


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("said", LOSSES)
def test_what_loses_work_is_called_out(said, before):
    for form in LOSSES[said]:
        assert said in read(before.format(form)).warns, form


@pytest.mark.parametrize(
    "command",
    [
        *(
            "status",
            "log --oneline -5",
            "diff --stat main",
            "show HEAD:a.py",
            "blame a",
        ),
        *("add -A", "commit -m 'fix'", "commit -mfAn", "branch", "branch -a", "tag -l"),
        *("checkout -b new", "switch main", "switch -c new", "stash", "stash list"),
        *(
            "reset a.py",
            "reset --soft HEAD~1",
            "worktree list",
            "reflog show",
            "reflog",
        ),
        *("branch feature/D", "rev-parse HEAD", "log -n 5", "symbolic-ref HEAD"),
        *("cherry-pick abc", "notes list", "grep -n x", "--version", "-C x status"),
        *("commit -m x -- --amend", "ls-files"),
    ],
)
def test_what_loses_nothing_is_shown_without_noise(command):
    found = read(f"git {command}")
    assert (found.warns, found.doubts) == ([], [])


@pytest.mark.parametrize(
    "command",
    [
        *("-c alias.x='!rm -rf y' x", "-c alias.s='reset --hard' s"),
        *("-c core.pager=x log", "-c core.editor=x commit", "-c diff.external=x diff"),
        *(
            "-c credential.helper='!x' fetch",
            "-c gpg.program=x log",
            "-c include.path=x",
        ),
        *("--config-env=alias.x=X x", "--config-env alias.x=X x", "--exec-path=x log"),
        *("clone -u x y z", "fetch --upload-pack=x y", "push --receive-pack x y"),
        *("submodule foreach 'rm x'", "bisect run x", "rebase -x x main", "grep -Ox y"),
        *("rebase --exec x main", "filter-branch --tree-filter x", "difftool -x y"),
    ],
)
def test_what_may_run_another_program_is_uninspectable(command):
    assert RUNS_OTHER in read(f"git {command}").doubts


def test_a_command_that_git_does_not_have_is_unknown():
    assert UNKNOWN_PROGRAM in read("git wipe").warns


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sed -i s/a/b/ f", "Overwrites a file"),
        ("sed -ni.bak p f", "Overwrites a file"),
        ("sed --in-place=.b s/a/b/ f", "Overwrites a file"),
        ("sed -E --in s/a/b/ f", "Overwrites a file"),
        ("gawk -i inplace 1 f", "Overwrites a file"),
        ("sort -o f f", "Overwrites a file"),
        ("sort -uo f g", "Overwrites a file"),
        ("sort --output=f g", "Overwrites a file"),
        ("tree -o f", "Overwrites a file"),
        ("find . -fprint f", "Overwrites a file"),
        ("find . -name x -delete", "Deletes what it finds"),
        ("curl -o f x.example", "Overwrites a file"),
        ("rsync -a --delete-after a b", RSYNC),
        ("rsync --del a b", RSYNC),
        ("rsync --remove-source-files a b", RSYNC),
        ("tar xf a.tar", "Overwrites a file"),
        ("tar -czf a.tgz d --remove-files", "Deletes files"),
        ("date -s 2020-01-01", "Changes the system"),
        ("date --set=2020-01-01", "Changes the system"),
        ("hostname evil", "Changes the system"),
        ("uniq a b", "Overwrites a file"),
        ("docker volume rm x", "Removes containers"),
        ("docker system prune -af --volumes", "Removes containers"),
        ("docker compose down -v", "Removes containers"),
        ("docker image remove x", "Removes containers"),
        ("kubectl replace --force -f x", "Removes what runs"),
        ("kubectl apply --prune -f x", "Removes what runs"),
        ("helm del x", "Removes what runs"),
        ("kubectl edit deploy x", "Changes a cluster"),
        ("terraform apply -destroy", "Destroys infrastructure"),
        ("terraform state rm x", "Destroys infrastructure"),
        ("terraform workspace delete x", "Destroys infrastructure"),
        ("terraform apply -auto-approve", "Asks for no confirmation"),
        ("pulumi down", "Destroys infrastructure"),
        ("heroku pg:reset", "Deletes in the cloud"),
        ("aws s3 rb s3://x", "Deletes in the cloud"),
        ("aws ecr batch-delete-image x", "Deletes in the cloud"),
        ("rclone sync a b:", "Deletes in the cloud"),
        ("sudo kubectl delete pod x", "Removes what runs"),
        ("sudo docker volume rm x", "Removes containers"),
        ("timeout 9 sed -i s/a/b/ f", "Overwrites a file"),
    ],
)
def test_what_everyday_programs_lose_is_called_out(command, said):
    assert said in read(command).warns


def test_the_gravest_losses_come_first_in_the_tags():
    shown = kinds.show(
        "run_command", cmd="sudo curl -k x > y && npm i z && git reset --hard"
    )
    assert loud(shown)[0] == "Discards changes"
