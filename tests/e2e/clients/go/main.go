// SPDX-License-Identifier: Apache-2.0

// Writes with go-smb2: SMB 2.1 to 3.1.1. Its requests are always signed, and it asks for no oplock. Command line,
// policies and lines are those of ../writing.py.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/hirochachacha/go-smb2"
)

var (
	host       = flag.String("host", "", "")
	share      = flag.String("share", "", "")
	user       = flag.String("user", "", "")
	password   = flag.String("password", "", "")
	name       = flag.String("name", "", "")
	dataFile   = flag.String("data", "", "")
	dialect    = flag.String("dialect", "3.1.1", "")
	blocks     = flag.Int("blocks", 40, "")
	size       = flag.Int("size", 32768, "")
	policy     = flag.String("policy", "stop", "")
	inPlace    = flag.Bool("in-place", false, "")
	flushEvery = flag.Int("flush-every", 0, "")
	pace       = flag.Float64("pace", 0, "")
	timeout    = flag.Float64("timeout", 60, "")
	patience   = flag.Float64("patience", 20, "")
	noWait     = flag.Bool("no-wait", false, "")
	look       = flag.String("look", "", "")
	_          = flag.String("ask", "none", "go-smb2 asks for nothing")
	_          = flag.String("configuration", "", "for Samba's clients")
)

var dialects = map[string]uint16{"2.1": 0x0210, "3.0": 0x0300, "3.1.1": 0x0311}

// The session, the tree or the handle is gone, and the server says so: a program that logs in again may go on.
var sessionIsGone = map[uint32]bool{0xC0000008: true, 0xC00000B5: true, 0xC00000C9: true, 0xC0000128: true,
	0xC0000203: true, 0xC000020C: true, 0xC000020D: true, 0xC000035C: true}

const sharingViolation = 0xC0000043 // the server may not have noticed that the last connection is gone

type line map[string]interface{}

func say(what line) {
	what["at"] = float64(time.Now().UnixMicro()) / 1e6
	text, _ := json.Marshal(what)
	fmt.Println(string(text))
}

type progress struct {
	call    string
	begin   int  // the first block that the next login has to write
	touched bool // the file must not be emptied (any more)
	until   time.Time
}

func seconds(number float64) time.Duration { return time.Duration(number * float64(time.Second)) }

func dial() (*smb2.Share, error) {
	connection, err := net.DialTimeout("tcp", net.JoinHostPort(*host, "445"), seconds(*timeout))
	if err != nil {
		return nil, err
	}
	dialer := &smb2.Dialer{
		Negotiator: smb2.Negotiator{SpecifiedDialect: dialects[*dialect]},
		Initiator:  &smb2.NTLMInitiator{User: *user, Password: *password},
	}
	session, err := dialer.Dial(connection)
	if err != nil {
		return nil, err
	}
	return session.Mount(fmt.Sprintf(`\\%s\%s`, *host, *share))
}

const lookedBytes, lookedBlock, lookedBlocks = 64, 4096, 64

// What one look shows, as text: ../looking.py.
func lookedAt(mounted *smb2.Share, held *smb2.File, turn int) (string, error) {
	switch *look {
	case "held", "opened":
		file, offset := held, int64(turn%lookedBlocks*lookedBlock)
		if file == nil {
			var err error
			offset = 0
			if file, err = mounted.Open(*name); err != nil {
				return "", err
			}
			defer file.Close()
		}
		bytes := make([]byte, lookedBlock)
		if _, err := file.ReadAt(bytes, offset); err != nil && err != io.EOF {
			return "", err
		}
		return strings.TrimRight(string(bytes[:lookedBytes]), "\x00"), nil
	case "size":
		info, err := mounted.Stat(*name)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(info.Size()), nil
	default:
		entries, err := mounted.ReadDir(path.Dir(*name))
		names := []string{}
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		sort.Strings(names)
		return strings.Join(names, " "), err
	}
}

func lookOn() error {
	mounted, err := dial()
	if err != nil {
		return err
	}
	var held *smb2.File
	if *look == "held" {
		if held, err = mounted.Open(*name); err != nil {
			return err
		}
	}
	last := ""
	for turn := 0; ; turn++ {
		found, err := lookedAt(mounted, held, turn)
		if err != nil {
			return err
		}
		if found != last {
			say(line{"seen": found})
			last = found
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Logs in, writes the blocks from progress.begin to the last, and closes.
func (p *progress) writeFrom(data []byte) error {
	p.call = "login"
	connection, err := net.DialTimeout("tcp", net.JoinHostPort(*host, "445"), seconds(*timeout))
	if err != nil {
		return err
	}
	defer connection.Close()
	patient := func() { connection.SetDeadline(time.Now().Add(seconds(*timeout))) }
	patient()
	dialer := &smb2.Dialer{
		Negotiator: smb2.Negotiator{SpecifiedDialect: dialects[*dialect]},
		Initiator:  &smb2.NTLMInitiator{User: *user, Password: *password},
	}
	session, err := dialer.Dial(connection)
	if err != nil {
		return err
	}
	mounted, err := session.Mount(fmt.Sprintf(`\\%s\%s`, *host, *share))
	if err != nil {
		return err
	}
	p.call = "open"
	flags := os.O_RDWR | os.O_CREATE
	if !p.touched {
		flags |= os.O_TRUNC
	}
	file, err := mounted.OpenFile(*name, flags, 0644)
	if err != nil {
		return err
	}
	say(line{"opened": true})
	flush := func(number int) error {
		p.call = "flush"
		patient()
		if err := file.Sync(); err != nil {
			return err
		}
		p.begin = number + 1
		say(line{"flushed": number})
		return nil
	}
	for number := p.begin; number < *blocks; number++ {
		p.call = "write"
		patient()
		written, err := file.WriteAt(data[number**size:(number+1)**size], int64(number**size))
		if err != nil {
			return err
		}
		if written != *size {
			return fmt.Errorf("wrote %d bytes", written)
		}
		p.touched = true
		p.until = time.Now().Add(seconds(*patience))
		if *flushEvery == 0 {
			p.begin = number + 1
		}
		say(line{"acked": number})
		time.Sleep(seconds(*pace / 1000))
		if *flushEvery > 0 && (number+1)%*flushEvery == 0 {
			if err := flush(number); err != nil {
				return err
			}
		}
	}
	if *policy != "close-only" {
		if err := flush(*blocks - 1); err != nil {
			return err
		}
	}
	p.call = "close"
	patient()
	if err := file.Close(); err != nil {
		return err
	}
	if *policy != "close-only" {
		patient()
		mounted.Umount()
		session.Logoff()
	}
	return nil
}

// Whether a program may answer an error with a new login.
func isBroken(err error, call string) bool {
	var response *smb2.ResponseError
	if errors.As(err, &response) {
		return call == "login" || sessionIsGone[response.Code] || (call == "open" && response.Code == sharingViolation)
	}
	var transport *smb2.TransportError
	var network net.Error
	return call == "login" || errors.As(err, &transport) || errors.As(err, &network)
}

func main() {
	flag.Parse()
	if *look != "" {
		say(line{"ready": true})
		input := bufio.NewReader(os.Stdin)
		input.ReadString('\n')
		go func() {
			input.ReadString('\n')
			os.Exit(0)
		}()
		panic(lookOn())
	}
	data, err := os.ReadFile(*dataFile)
	if err != nil {
		panic(err)
	}
	say(line{"ready": true})
	if !*noWait {
		bufio.NewReader(os.Stdin).ReadString('\n')
	}
	p := &progress{touched: *inPlace, until: time.Now().Add(seconds(*patience))}
	for {
		err := p.writeFrom(data)
		if err == nil {
			say(line{"end": "success"})
			return
		}
		broken := isBroken(err, p.call)
		say(line{"error": err.Error(), "call": p.call, "broken": broken})
		if !broken || *policy != "continue" || time.Now().After(p.until) {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	say(line{"end": "failure"})
}
