// SPDX-License-Identifier: Apache-2.0
// What the ranks of a node know of each other's open files: who holds which (device, inode), with
// layers or plain, and how long the file is as programs must see it. Two openings of a file that
// could see each other's bytes late are a conflict: the layered ones are called back to the kernel,
// and everybody is plain until all have closed.
//
// Shared memory, `registry` in the node's directory. Questions take no lock. Changes take one of
// many locks that survive the death of their holder (layers/machinery/node/lock.h). 65,536 leases;
// when they are used up files get no layers. Errno is never touched. Not to be called while holding
// a File's lock that a recall would need.
#pragma once

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "layers/machinery/node/lock.h"

namespace weir::node {

struct Lease;  // of this process; ends by close()

enum Access : uint32_t {
  kReads = 1,
  kWrites = 2,
  kLayered = 4,  // wants to hold bytes in the process
  kShares =
      8,  // its stack keeps openings of the same `kind` coherent by itself (Kind flag kSharesNode)
  kEmpty = 16,  // layered, and holds nothing before begin(): until then nobody waits for it, and no
                // thread has to be there
};

struct Asking {
  uint64_t device, inode;
  uint32_t access;
  uint32_t kind;  // of the stack: openings that share must have the same
  void* owner;    // handed to the recall callback; of layered openings
  void (*recall)(void* owner, Lease* lease) = nullptr;  // null: the one that on_recall() set
};

enum class Verdict : uint8_t {
  kGranted,  // as asked
  kPlain,  // somebody else has the file: no layers for this one. Who had them has left them already
  kFull,   // no lease to be had (table full, no shared memory): no layers, and *lease is null
};

// Begins to share: maps the registry. False when there is none to be had. Once; open() does it at
// need.
bool join();
// Nobody on this node has any lease: a plain opening for reading need not ask. One load or two.
struct Registry;
extern WEIR_OWN Registry* registry;
bool any();

// Every opening for writing, every layered one, and plain ones for reading while any(). Blocks
// while layered holders leave or, if they have died, until their bytes are drained; not longer than
// a minute.
Verdict open(const Asking& asking, Lease** lease);
// Of a lease that was kEmpty, before the first byte is held. False: it has been taken away
// meanwhile, or no thread can be had that would serve a recall; the file must leave.
bool begin(Lease* lease);
// Somebody else has the file, and did not wait for this one, which was empty.
bool taken_away(const Lease* lease);
// The holder has left its layers, for whatever reason: it is plain from now on. Also what a recall
// must end in.
void leave(Lease* lease);
// The last descriptor is closed, everything written. Null is fine.
void close(Lease* lease);

// Somebody needs the file as it is (truncate by path, link, a copy by the kernel): layered holders
// elsewhere are called back. Those of this process too, but `except`. True when there were any that
// held something.
bool recall(uint64_t device, uint64_t inode, Lease* except);

// The kind of the layered openings of a file, when all of them share their stacks; 0: none does, or
// others hold it as well.
uint32_t kind_of_sharers(uint64_t device, uint64_t inode);
// Whether the lease's file has others. A load.
bool has_others(const Lease* lease);

// Called in a thread of this room, signals blocked, no lock held, when a layered opening must
// leave: has to end, at once or later, in leave(lease). Set before the first open. close(lease) in
// another thread waits until it has returned.
void on_recall(void (*callback)(void* owner, Lease* lease));

// The size that programs must see, when the file itself is shorter: bytes that have been accepted
// and not written. The largest published one counts while any layered writer is there.
void publish_size(Lease* lease, uint64_t bytes);
// The file is as long as it should be again (flushed, truncated).
void withdraw_size(Lease* lease);
// False: as the kernel says. No lock; a few loads when nobody has published anything.
bool size_of(uint64_t device, uint64_t inode, uint64_t* bytes);
bool any_sizes();

// Bumped for a name's file by whoever renames, unlinks, truncates or changes it on this node;
// layers that keep names compare.
uint64_t change_count(uint64_t device, uint64_t inode);
void changed(uint64_t device, uint64_t inode);

// Names of this node's files have changed (unlink, rename): whoever keeps names compares them again
// when the number has changed.
void names_changed();
uint64_t names_epoch();
// Changes with every opening and closing for writing on this node: between two equal values no file
// was written by anybody who does not hold a lease for writing still.
uint64_t writes_epoch();
// How many hold a lease for writing the file; more than there can be where that is not known.
uint32_t writers(uint64_t device, uint64_t inode);

// Layers that save opens bypass the files of the device, in every rank of the node from now on:
// opening is cheap there.
void agree_bypass(uint64_t device);
bool agreed_bypass(uint64_t device);

// In a forked child: the parent's leases are not its own. They live on in the parent.
void forked_leases();
// At the end of the process: it no longer counts. True when no other one that lives has the
// registry mapped: the job's directory may go.
bool leave_last();
// The registry as it is, without taking part: alive() then has what it needs to resolve processes
// of other PID namespaces.
void look_on();
// Processes of other PID namespaces have been here, which this one cannot see.
bool may_be_used_elsewhere();
// Every lease of a dead process is freed. For the write-back daemon, when the dead one's bytes are
// on disk. Number freed.
uint32_t release_dead(uint32_t pid, uint32_t start);
// The same for all dead processes that `may` says yes to.
uint32_t release_dead_if(bool (*may)(Identity who, void* with), void* with);
// Asked by open() when it waits for a dead holder: starts a daemon that drains. Set by drain/.
void on_dead_holder(void (*ask_for_help)());

}  // namespace weir::node
